// JsonLog writes the log to standard error as JSON, one object in each line:
//
//  {"time": "2026-01-31T12:00:00.123456Z", "level": "info", "node": "n1",
//   "source": "daemon.cc:147", "message": "..."}                            (in one line)
//
// Thread rule: any; glog calls it one line after the other.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "glog/logging.h"

namespace tokamak::daemon {

class JsonLog final : public google::LogSink {
 public:
  // Replaces glog's own lines as long as it lives, except that of a failed CHECK, with its stack.
  explicit JsonLog(std::string node);
  ~JsonLog() override;
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;

  // Returns a line of the log, without its end, for use elsewhere.
  std::string Line(const std::string& level, const std::string& source, const std::string& message) const;

  void send(google::LogSeverity severity, const char* full_filename, const char* base_filename, int line,
            const google::LogMessageTime& time, const char* message, size_t message_len) override;

 private:
  std::string LineAt(absl::Time at, const std::string& level, const std::string& source,
                     const std::string& message) const;

  const std::string node_;
};

}  // namespace tokamak::daemon
