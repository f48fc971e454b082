#include "lib/daemon/watch/text_log.h"

#include "glog/logging.h"

namespace tokamak::daemon {
namespace {

google::LogSeverity AsGlog(base::Severity severity) {
  switch (severity) {
    case base::Severity::kDebug:
    case base::Severity::kInfo:
      return google::GLOG_INFO;
    case base::Severity::kWarning:
      return google::GLOG_WARNING;
    case base::Severity::kError:
      return google::GLOG_ERROR;
    case base::Severity::kFatal:
      return google::GLOG_FATAL;
  }
  return google::GLOG_ERROR;
}

}  // namespace

TextLog::TextLog(const char* program) : before_(base::SetLogSink(this)) {
  FLAGS_logtostderr = true;  // no files
  google::InitGoogleLogging(program);
}

TextLog::~TextLog() { base::SetLogSink(before_); }

void TextLog::Write(const base::LogLine& line) {
  google::LogMessage(line.file, line.line, AsGlog(line.severity)).stream() << line.text;
}

}  // namespace tokamak::daemon
