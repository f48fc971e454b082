#include "lib/daemon/watch/json_log.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace tokamak::daemon {

JsonLog::JsonLog(std::string node) : node_(std::move(node)), before_(base::SetLogSink(this)) {}

JsonLog::~JsonLog() { base::SetLogSink(before_); }

std::string JsonLog::Line(const std::string& level, const std::string& source, const std::string& message) const {
  const nlohmann::ordered_json object = {
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone())},
      {"level", level},
      {"node", node_},
      {"source", source},
      {"message", message},
  };
  return object.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

void JsonLog::Write(const base::LogLine& line) {
  if (line.severity == base::Severity::kFatal && before_ != nullptr) return before_->Write(line);
  const std::string text =
      Line(base::ToString(line.severity), absl::StrCat(line.file, ":", line.line), std::string(line.text)) + "\n";
  // One call, so that lines of several daemons do not mix; lines that cannot be written are lost.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace tokamak::daemon
