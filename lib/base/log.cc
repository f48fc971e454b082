#include "lib/base/log.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

namespace tokamak::base {
namespace {

std::atomic<LogSink*> log_sink{nullptr};

// The stream of a message begins its life as an ostringstream of its own, and ends it here.
std::string TextOf(std::ostream& stream, int error) {
  if (error != 0) stream << ": " << std::strerror(error);
  std::string text = static_cast<std::ostringstream&>(stream).str();
  delete &stream;
  return text;
}

void Write(Severity severity, const char* file, int line, const std::string& text) {
  const char* const slash = std::strrchr(file, '/');
  const LogLine whole{severity, slash == nullptr ? file : slash + 1, line, text};
  if (LogSink* const sink = log_sink.load(std::memory_order_acquire); sink != nullptr) return sink->Write(whole);
  std::ostringstream out;
  out << "DIWEF"[static_cast<int>(severity)] << ' ' << whole.file << ':' << line << "] " << text << '\n';
  const std::string bytes = out.str();
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
}

}  // namespace

const char* ToString(Severity severity) {
  switch (severity) {
    case Severity::kDebug:
      return "debug";
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
    case Severity::kFatal:
      return "fatal";
  }
  return "?";
}

LogSink* SetLogSink(LogSink* sink) { return log_sink.exchange(sink, std::memory_order_acq_rel); }

void SetLogLevel(Severity least) { internal::log_level.store(least, std::memory_order_relaxed); }

namespace internal {

std::atomic<Severity> log_level{Severity::kInfo};

LogMessage::LogMessage(Severity severity, const char* file, int line, int error)
    : severity_(severity), file_(file), line_(line), error_(error), stream_(*new std::ostringstream) {}

LogMessage::~LogMessage() { Write(severity_, file_, line_, TextOf(stream_, error_)); }

CheckFailure::CheckFailure(const char* file, int line, const char* condition, int error)
    : file_(file), line_(line), error_(error), stream_(*new std::ostringstream) {
  stream_ << "Check failed: " << condition << ' ';
}

CheckFailure::CheckFailure(const char* file, int line, const std::string* comparison)
    : CheckFailure(file, line, comparison->c_str()) {
  delete comparison;
}

CheckFailure::~CheckFailure() {
  Write(Severity::kFatal, file_, line_, TextOf(stream_, error_));
  std::abort();
}

FailedComparison::FailedComparison(const char* text) : stream_(*new std::ostringstream) { stream_ << text << " ("; }

FailedComparison::~FailedComparison() { delete &stream_; }

std::ostream& FailedComparison::Second() { return stream_ << " vs. "; }

const std::string* FailedComparison::Take() {
  stream_ << ")";
  return new std::string(static_cast<std::ostringstream&>(stream_).str());
}

}  // namespace internal
}  // namespace tokamak::base
