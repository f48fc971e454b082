// InfiniBand's two codes of a delay in five bits, on the wire as in ibv_qp_attr, and its code of
// "for ever".
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::verbs {

// 4.096 us x 2^n (9.7.6.1.3).
constexpr base::Duration AckTimeout(uint8_t code) { return base::Nanoseconds(int64_t{4096} << code); }

// Returns the code, 1..31, of the shortest time-out not below `delay`.
constexpr uint8_t AckTimeoutCode(base::Duration delay) {
  uint8_t code = 1;
  while (code < 31 && AckTimeout(code) < delay) ++code;
  return code;
}

// Returns the time for which a peer waits after an RNR NAK with this code, 0..31 (table 45).
constexpr base::Duration NotReadyDelay(uint8_t code) {
  constexpr int32_t kTenMicroseconds[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                            48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                            2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return base::Microseconds(10) * kTenMicroseconds[code & 31];
}

// Returns the code of the shortest such wait not below `delay`; 0, the longest, beyond 491.52 ms.
constexpr uint8_t NotReadyCode(base::Duration delay) {
  for (uint8_t code = 1; code < 32; ++code) {
    if (NotReadyDelay(code) >= delay) return code;
  }
  return 0;
}

// The RNR retry count that never ends (9.7.5.2.8). Only for queue pairs that are walked by Modify:
// our own waits have a deadline.
constexpr uint8_t kRnrRetryForever = 7;

}  // namespace tokamak::verbs
