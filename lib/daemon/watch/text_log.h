// TextLog writes the log to standard error as lines of glog's, with the time and the thread, and a
// failed CHECK with its stack.
//
// Thread rule: any.
#pragma once

#include "lib/base/log.h"

namespace tokamak::daemon {

class TextLog final : public base::LogSink {
 public:
  // Leads all lines here as long as it lives. One in each program.
  explicit TextLog(const char* program);
  ~TextLog() override;
  TextLog(const TextLog&) = delete;
  TextLog& operator=(const TextLog&) = delete;

  void Write(const base::LogLine& line) override;

 private:
  base::LogSink* const before_;
};

}  // namespace tokamak::daemon
