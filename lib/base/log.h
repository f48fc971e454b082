// LOG: lines for whoever runs the program, through one sink that can be replaced.
//
//   LOG(WARNING) << "a rail is gone: " << why;
//   LOG_IF(ERROR, !sent.ok()) << sent;
//   PLOG(ERROR) << "rdma_destroy_id";                   // with errno
//   LOG_EVERY_N(WARNING, 100) << "the table is full";   // the first of each hundred
//   LOG(DEBUG) << "a client is gone";                   // left out unless asked for
//
// Without a sink, lines go to standard error as "W rail.cc:65] a rail is gone: ...", each in one
// write.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ostream>
#include <string_view>

#include "lib/base/check.h"

namespace tokamak::base {

enum class Severity : uint8_t { kDebug, kInfo, kWarning, kError, kFatal };  // kFatal: a CHECK

// One of "debug", "info", "warning", "error", "fatal".
const char* ToString(Severity severity);

struct LogLine {
  Severity severity;
  const char* file;       // without its folders
  int line;               // in `file`
  std::string_view text;  // without an end of line
};

class LogSink {
 public:
  virtual ~LogSink() = default;
  // Called by any thread, also by several at once. After a line of kFatal the process aborts.
  virtual void Write(const LogLine& line) = 0;
};

// Leads all lines to `sink`, which lives until it is replaced and no thread logs any more; null:
// standard error. Returns the sink before.
LogSink* SetLogSink(LogSink* sink);

// Leaves out lines below `least`; kInfo at first. kFatal is never left out.
void SetLogLevel(Severity least);

namespace internal {

extern std::atomic<Severity> log_level;

inline bool IsLogged(Severity severity) { return severity >= log_level.load(std::memory_order_relaxed); }

// A line, written when it is destroyed.
class LogMessage final {
 public:
  LogMessage(Severity severity, const char* file, int line, int error = 0);
  LogMessage(const LogMessage&) = delete;
  LogMessage& operator=(const LogMessage&) = delete;
  ~LogMessage();

  std::ostream& stream() { return stream_; }

 private:
  const Severity severity_;
  const char* const file_;
  const int line_;
  const int error_;  // an errno; 0: none
  std::ostream& stream_;
};

}  // namespace internal
}  // namespace tokamak::base

#define TOKAMAK_SEVERITY_DEBUG ::tokamak::base::Severity::kDebug
#define TOKAMAK_SEVERITY_INFO ::tokamak::base::Severity::kInfo
#define TOKAMAK_SEVERITY_WARNING ::tokamak::base::Severity::kWarning
#define TOKAMAK_SEVERITY_ERROR ::tokamak::base::Severity::kError

// A line that is left out evaluates nothing, its condition neither.
#define TOKAMAK_LOG_IF(severity, condition, ...)                  \
  !(::tokamak::base::internal::IsLogged(severity) && (condition)) \
      ? (void)0                                                   \
      : ::tokamak::base::internal::Statement() &                  \
            ::tokamak::base::internal::LogMessage(severity, __FILE__, __LINE__, ##__VA_ARGS__).stream()

// True at the first of each `n` passes of this place, counted over all threads.
#define TOKAMAK_EVERY(n)                                              \
  ([]() -> bool {                                                     \
    static std::atomic<uint64_t> passes{0};                           \
    return passes.fetch_add(1, std::memory_order_relaxed) % (n) == 0; \
  }())

#define LOG(severity) TOKAMAK_LOG_IF(TOKAMAK_SEVERITY_##severity, true)
#define PLOG(severity) TOKAMAK_LOG_IF(TOKAMAK_SEVERITY_##severity, true, errno)
#define LOG_IF(severity, condition) TOKAMAK_LOG_IF(TOKAMAK_SEVERITY_##severity, condition)
#define LOG_EVERY_N(severity, n) TOKAMAK_LOG_IF(TOKAMAK_SEVERITY_##severity, TOKAMAK_EVERY(n))
#define LOG_IF_EVERY_N(severity, condition, n) \
  TOKAMAK_LOG_IF(TOKAMAK_SEVERITY_##severity, (condition) && TOKAMAK_EVERY(n))
