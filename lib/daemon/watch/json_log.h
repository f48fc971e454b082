// JsonLog writes the log to standard error as JSON, one object in each line:
//
//  {"time": "2026-01-31T12:00:00.123456Z", "level": "info", "node": "n1",
//   "source": "daemon.cc:147", "message": "..."}                            (in one line)
//
// Thread rule: any.
#pragma once

#include <string>

#include "lib/base/log.h"

namespace tokamak::daemon {

class JsonLog final : public base::LogSink {
 public:
  // Replaces the lines of the sink before as long as it lives, except that of a failed CHECK.
  explicit JsonLog(std::string node);
  ~JsonLog() override;
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;

  // Returns a line of the log, without its end.
  std::string Line(const std::string& level, const std::string& source, const std::string& message) const;

  void Write(const base::LogLine& line) override;

 private:
  const std::string node_;
  base::LogSink* const before_;
};

}  // namespace tokamak::daemon
