// The calendar: Unix time, for files and people. It may be set back or forth; loops and deadlines
// have base/time.h.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/time.h"

namespace tokamak::os {

int64_t UnixNanoseconds();

// Returns it in nanoseconds, for time zero of a loop that has `now`.
int64_t UnixNanosecondsAtZero(base::Time now);

// "2026-11-25T20:15:01Z", and "2026-11-25T20:15:01.123Z". (RFC 3339)
std::string UtcText(int64_t unix_nanoseconds);
std::string UtcTextWithMilliseconds(int64_t unix_nanoseconds);

}  // namespace tokamak::os
