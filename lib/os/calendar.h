// The calendar: Unix time, for files and people. It may be set back or forth; loops and deadlines
// have a clock of their own (base/time.h).
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/time.h"

namespace tokamak::os {

int64_t UnixNanoseconds();

// Returns the Unix time, in nanoseconds, at which the time of a loop that now has `now` was zero.
int64_t UnixNanosecondsAtZero(base::Time now);

// "2026-11-25T20:15:01Z", or with milliseconds "2026-11-25T20:15:01.123Z" (RFC 3339).
std::string UtcText(int64_t unix_nanoseconds);
std::string UtcTextWithMilliseconds(int64_t unix_nanoseconds);

}  // namespace tokamak::os
