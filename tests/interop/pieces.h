// Memory as a number of equal pieces, each with a pattern that its seed decides, and with bytes
// behind them that must not change.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace tokamak::interop {

constexpr uint8_t kClearByte = 0xa5;
constexpr uint32_t kGuard = 64;  // bytes behind the last piece

struct Pieces {
  uint32_t count = 1;
  uint32_t length = 0;  // bytes of each
  uint64_t seed = 0;    // of the first; the next has one more

  uint64_t bytes() const { return uint64_t{count} * length; }
  uint64_t bytes_with_guard() const { return bytes() + kGuard; }
  uint64_t offset(uint32_t index) const { return uint64_t{index} * length; }
};

// All take `memory` of at least bytes_with_guard().
void Clear(absl::Span<uint8_t> memory, const Pieces& pieces);  // pieces and guard
void Fill(absl::Span<uint8_t> memory, const Pieces& pieces);   // pieces; clears the guard

// Returns the place of the first byte that differs from Fill's.
std::optional<uint64_t> FindWrong(absl::Span<const uint8_t> memory, const Pieces& pieces);

}  // namespace tokamak::interop
