#include "tests/interop/pieces.h"

#include <algorithm>
#include <cstring>

#include "lib/base/check.h"
#include "lib/base/random.h"

namespace tokamak::interop {
namespace {

// Calls `see` with each word of the pattern, its place and how many of its bytes count; stops where
// it says false.
template <typename See>
void EachWord(const Pieces& pieces, const See& see) {
  for (uint32_t piece = 0; piece < pieces.count; ++piece) {
    base::Random random(pieces.seed + piece);
    for (uint32_t at = 0; at < pieces.length; at += sizeof(uint64_t)) {
      const uint64_t word = random.Next();
      const size_t bytes = std::min<size_t>(sizeof word, pieces.length - at);
      if (!see(pieces.offset(piece) + at, reinterpret_cast<const uint8_t*>(&word), bytes)) return;
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
  EachWord(pieces, [&](uint64_t at, const uint8_t* word, size_t bytes) {
    std::memcpy(memory.data() + at, word, bytes);
    return true;
  });
  std::fill_n(memory.begin() + static_cast<int64_t>(pieces.bytes()), kGuard, kClearByte);
}

std::optional<uint64_t> FindWrong(absl::Span<const uint8_t> memory, const Pieces& pieces) {
  CHECK_LE(pieces.bytes_with_guard(), memory.size());
  std::optional<uint64_t> wrong;
  EachWord(pieces, [&](uint64_t at, const uint8_t* word, size_t bytes) {
    if (std::memcmp(memory.data() + at, word, bytes) == 0) return true;
    const uint8_t* const place = memory.data() + at;
    wrong = at + static_cast<uint64_t>(std::mismatch(word, word + bytes, place).first - word);
    return false;
  });
  for (uint64_t at = pieces.bytes(); !wrong && at < pieces.bytes_with_guard(); ++at) {
    if (memory[at] != kClearByte) wrong = at;
  }
  return wrong;
}

}  // namespace tokamak::interop
