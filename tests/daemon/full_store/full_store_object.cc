#include "tests/daemon/full_store/full_store_object.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/base/random.h"

namespace tokamak::daemon {
namespace {

// Most are small, and most bytes are those of the few that are large.
size_t DataSize(base::Random& random) {
  const uint64_t kind = random.Below(100);
  if (kind < 3) return 0;
  if (kind < 70) return random.Below(4096);
  if (kind < 97) return random.Below(64 * 1024);
  return random.Below(FullStoreObject::kLargest + 1);
}

// The bytes of word `place`.
uint64_t Word(uint64_t seed, size_t place) {
  const uint64_t mixed = (seed ^ place) * 0x9e3779b97f4a7c15;
  return mixed ^ (mixed >> 29);
}

void FillOne(uint64_t seed, Span<uint8_t> bytes) {
  for (size_t begin = 0; begin < bytes.size(); begin += sizeof(uint64_t)) {
    const uint64_t word = Word(seed, begin);
    std::memcpy(bytes.data() + begin, &word, std::min(sizeof(word), bytes.size() - begin));
  }
}

bool IsOne(uint64_t seed, Span<const uint8_t> bytes) {
  for (size_t begin = 0; begin < bytes.size(); begin += sizeof(uint64_t)) {
    const uint64_t word = Word(seed, begin);
    if (std::memcmp(bytes.data() + begin, &word, std::min(sizeof(word), bytes.size() - begin)) != 0) return false;
  }
  return true;
}

}  // namespace

FullStoreObject::FullStoreObject(uint64_t number) : id_(ObjectId::FromName(absl::StrCat("full store ", number))) {
  base::Random random(number);
  seed_ = random.Next();
  data_size_ = DataSize(random);
  metadata_size_ = random.Chance(0.5) ? 0 : random.Below(kMostMetadata + 1);
}

void FullStoreObject::Fill(Span<uint8_t> data, Span<uint8_t> metadata) const {
  FillOne(seed_, data);
  FillOne(~seed_, metadata);
}

bool FullStoreObject::Is(Span<const uint8_t> data, Span<const uint8_t> metadata) const {
  return data.size() == data_size_ && metadata.size() == metadata_size_ && IsOne(seed_, data) &&
         IsOne(~seed_, metadata);
}

}  // namespace tokamak::daemon
