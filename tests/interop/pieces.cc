#include "tests/interop/pieces.h"

#include <algorithm>

#include "glog/logging.h"
#include "lib/base/random.h"

namespace tokamak::interop {
namespace {

// Calls `see` with each byte of the pattern and its place; stops where it says false.
template <typename See>
void EachByte(const Pieces& pieces, const See& see) {
  for (uint32_t piece = 0; piece < pieces.count; ++piece) {
    base::Random random(pieces.seed + piece);
    uint64_t word = 0;
    for (uint32_t i = 0; i < pieces.length; ++i) {
      if (i % 8 == 0) word = random.Next();
      if (!see(pieces.offset(piece) + i, static_cast<uint8_t>(word >> (i % 8 * 8)))) return;
    }
  }
}

}  // namespace

void Clear(absl::Span<uint8_t> memory, const Pieces& pieces) {
  CHECK_LE(pieces.bytes_with_guard(), memory.size());
  std::fill_n(memory.begin(), pieces.bytes_with_guard(), kClearByte);
}

void Fill(absl::Span<uint8_t> memory, const Pieces& pieces) {
  CHECK_LE(pieces.bytes_with_guard(), memory.size());
  EachByte(pieces, [&](uint64_t at, uint8_t byte) {
    memory[at] = byte;
    return true;
  });
  std::fill_n(memory.begin() + static_cast<int64_t>(pieces.bytes()), kGuard, kClearByte);
}

std::optional<uint64_t> FindWrong(absl::Span<const uint8_t> memory, const Pieces& pieces) {
  CHECK_LE(pieces.bytes_with_guard(), memory.size());
  std::optional<uint64_t> wrong;
  EachByte(pieces, [&](uint64_t at, uint8_t byte) {
    if (memory[at] != byte) wrong = at;
    return !wrong;
  });
  for (uint64_t at = pieces.bytes(); !wrong && at < pieces.bytes_with_guard(); ++at) {
    if (memory[at] != kClearByte) wrong = at;
  }
  return wrong;
}

}  // namespace tokamak::interop
