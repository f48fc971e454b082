#include "lib/os/calendar.h"

#include <ctime>

#include "absl/strings/str_format.h"

namespace tokamak::os {
namespace {

constexpr int64_t kSecond = 1'000'000'000;  // nanoseconds

std::string UntilTheSecond(int64_t unix_nanoseconds) {
  const std::time_t seconds = unix_nanoseconds / kSecond;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  return text;
}

}  // namespace

int64_t UnixNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * kSecond + now.tv_nsec;
}

int64_t UnixNanosecondsAtZero(base::Time now) {
  return UnixNanoseconds() - static_cast<int64_t>(now.picoseconds() / 1000);
}

std::string UtcText(int64_t unix_nanoseconds) { return UntilTheSecond(unix_nanoseconds) + "Z"; }

std::string UtcTextWithMilliseconds(int64_t unix_nanoseconds) {
  return absl::StrFormat("%s.%03dZ", UntilTheSecond(unix_nanoseconds), unix_nanoseconds % kSecond / 1'000'000);
}

}  // namespace tokamak::os
