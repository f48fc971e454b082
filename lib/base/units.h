// Sizes, durations, rates and shares as people write them: "512MiB", "64k", "250ms", "100Gb/s",
// "1%".
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"

namespace tokamak::base {

// Parses a number, perhaps with a fraction, and B, K/KB/KiB, M.., G.., T.. in either case. With an
// i, or a bare letter, a unit is a power of 1024; KB, MB, GB, TB are powers of 1000.
// kInvalidArgument names the remedy.
absl::StatusOr<uint64_t> ParseSize(absl::string_view text);

// "512 MiB", "1.5 GiB", "17 B".
std::string FormatSize(uint64_t bytes);

// Parses a number and ns, us, ms, s or min.
absl::StatusOr<Duration> ParseDuration(absl::string_view text);

// "12.3 us", "1.50 s".
std::string FormatDuration(Duration duration);

// Parses bits per second: a number and Mb/s, Gb/s or Tb/s in this spelling, as a B would be bytes.
absl::StatusOr<uint64_t> ParseRate(absl::string_view text);

// Parses a part of a whole: a number from 0 to 1, or one to 100 and a %.
absl::StatusOr<double> ParseShare(absl::string_view text);

}  // namespace tokamak::base
