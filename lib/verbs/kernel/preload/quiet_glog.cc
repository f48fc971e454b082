// The parts of glog that our libraries use, written again for a guest in another's process: no
// flags, no log files, no stack traces, no output unless asked for. A broken CHECK prints its
// reason and aborts, as ever.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "glog/logging.h"
#include "lib/verbs/kernel/preload/program.h"

namespace google {

struct LogMessage::LogMessageData {
  std::ostringstream stream;
  LogSeverity severity = GLOG_INFO;
};

LogMessageTime::LogMessageTime() : time_struct_(), timestamp_(0), usecs_(0), gmtoffset_(0) {}

LogMessage::LogMessage(const char* file, int line, LogSeverity severity, int64, SendMethod)
    : allocated_(new LogMessageData), data_(allocated_) {
  data_->severity = severity;
  const char* const name = std::strrchr(file, '/');
  data_->stream << (name == nullptr ? file : name + 1) << ":" << line << ": ";
}
LogMessage::LogMessage(const char* file, int line) : LogMessage(file, line, GLOG_INFO, 0, nullptr) {}
LogMessage::LogMessage(const char* file, int line, LogSeverity severity)
    : LogMessage(file, line, severity, 0, nullptr) {}
LogMessage::LogMessage(const char* file, int line, const CheckOpString& result)
    : LogMessage(file, line, GLOG_FATAL, 0, nullptr) {
  stream() << "Check failed: " << *result.str_ << " ";
}
LogMessage::~LogMessage() {
  tokamak::verbs::kernel::preload::Say(data_->stream.str(), data_->severity == GLOG_FATAL);
  const bool fatal = data_->severity == GLOG_FATAL;
  delete allocated_;
  if (fatal) std::abort();
}
void LogMessage::SendToLog() {}
std::ostream& LogMessage::stream() { return data_->stream; }

LogMessageFatal::LogMessageFatal(const char* file, int line) : LogMessage(file, line, GLOG_FATAL) {}
LogMessageFatal::LogMessageFatal(const char* file, int line, const CheckOpString& result)
    : LogMessage(file, line, result) {}
LogMessageFatal::~LogMessageFatal() {
  tokamak::verbs::kernel::preload::Say(static_cast<std::ostringstream&>(stream()).str(), true);
  std::abort();
}

ErrnoLogMessage::ErrnoLogMessage(const char* file, int line, LogSeverity severity, int64 count,
                                 void (LogMessage::*send)())
    : LogMessage(file, line, severity, count, send) {}
ErrnoLogMessage::~ErrnoLogMessage() { stream() << ": " << std::strerror(errno); }

namespace base {
CheckOpMessageBuilder::CheckOpMessageBuilder(const char* text) : stream_(new std::ostringstream) {
  *stream_ << text << " (";
}
CheckOpMessageBuilder::~CheckOpMessageBuilder() { delete stream_; }
std::ostream* CheckOpMessageBuilder::ForVar2() {
  *stream_ << " vs. ";
  return stream_;
}
std::string* CheckOpMessageBuilder::NewString() {
  *stream_ << ")";
  return new std::string(stream_->str());
}
}  // namespace base

template <>
void MakeCheckOpValueString(std::ostream* out, const unsigned char& value) {
  *out << static_cast<unsigned>(value);
}

}  // namespace google
