#include "tests/bench/cluster/content.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::bench {

Content::Content(uint64_t seed, uint32_t case_number, uint32_t repetition, const Edge& edge)
    : id_(base::ObjectId::FromName(
          absl::StrCat("cluster bench ", seed, ".", case_number, ".", repetition, ".", edge.from, ".", edge.to))) {
  std::memcpy(&key_, id_.data(), sizeof key_);
}

void Content::Fill(uint64_t offset, absl::Span<uint8_t> bytes) const {
  CHECK_EQ(offset % kWord, 0u);
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  for (size_t at = 0; at < bytes.size(); at += kWord) {
    uint64_t word = (key_ + (offset + at) / kWord) * kOdd;
    word ^= word >> 32;
    std::memcpy(bytes.data() + at, &word, std::min<size_t>(kWord, bytes.size() - at));
  }
}

}  // namespace tokamak::bench
