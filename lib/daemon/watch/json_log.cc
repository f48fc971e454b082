#include "lib/daemon/watch/json_log.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"

namespace tokamak::daemon {

JsonLog::JsonLog(std::string node) : node_(std::move(node)) {
  google::AddLogSink(this);
  FLAGS_logtostderr = false;
  FLAGS_stderrthreshold = google::GLOG_FATAL;
  for (int severity = google::GLOG_INFO; severity < google::NUM_SEVERITIES; ++severity) {
    google::SetLogDestination(severity, "");  // no files
  }
}

JsonLog::~JsonLog() {
  google::RemoveLogSink(this);
  FLAGS_logtostderr = true;
}

std::string JsonLog::Line(const std::string& level, const std::string& source, const std::string& message) const {
  return LineAt(absl::Now(), level, source, message);
}

std::string JsonLog::LineAt(absl::Time at, const std::string& level, const std::string& source,
                            const std::string& message) const {
  const nlohmann::ordered_json object = {
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", at, absl::UTCTimeZone())},
      {"level", level},
      {"node", node_},
      {"source", source},
      {"message", message},
  };
  return object.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

void JsonLog::send(google::LogSeverity severity, const char*, const char* base_filename, int line,
                   const google::LogMessageTime& time, const char* message, size_t message_len) {
  const absl::Time at = absl::FromTimeT(time.timestamp()) + absl::Microseconds(time.usec());
  const std::string level = absl::AsciiStrToLower(google::GetLogSeverityName(severity));
  const std::string text =
      LineAt(at, level, absl::StrCat(base_filename, ":", line), std::string(message, message_len)) + "\n";
  // One call, so that lines of several daemons do not mix; lines that cannot be written are lost.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace tokamak::daemon
