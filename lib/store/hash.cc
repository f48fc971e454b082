#include "lib/store/hash.h"

#include <algorithm>
#include <cstring>

#include "lib/base/bytes.h"

namespace tokamak::store {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5;

uint64_t RotateLeft(uint64_t v, int bits) { return v << bits | v >> (64 - bits); }

uint64_t Round(uint64_t lane, uint64_t input) { return RotateLeft(lane + input * kPrime2, 31) * kPrime1; }

uint64_t Merge(uint64_t hash, uint64_t lane) { return (hash ^ Round(0, lane)) * kPrime1 + kPrime4; }

uint64_t Load64(const uint8_t* p) { return base::LoadLittle<uint64_t>(p); }
uint32_t Load32(const uint8_t* p) { return base::LoadLittle<uint32_t>(p); }

}  // namespace

StreamHash::StreamHash() : lanes_{kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1}, partial_{} {}

void StreamHash::Add(absl::Span<const uint8_t> bytes) {
  const size_t waiting = size_ % kStripe;
  size_ += bytes.size();
  if (waiting != 0) {
    const size_t taken = std::min(kStripe - waiting, bytes.size());
    std::copy_n(bytes.begin(), taken, partial_.begin() + waiting);
    bytes.remove_prefix(taken);
    if (waiting + taken < kStripe) return;
    AddStripe(partial_.data());
  }
  while (bytes.size() >= kStripe) {
    AddStripe(bytes.data());
    bytes.remove_prefix(kStripe);
  }
  std::copy(bytes.begin(), bytes.end(), partial_.begin());
}

void StreamHash::AddStripe(const uint8_t* stripe) {
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = Round(lanes_[i], Load64(stripe + 8 * i));
}

uint64_t StreamHash::hash() const {
  uint64_t hash = kPrime5;
  if (size_ >= kStripe) {
    hash = RotateLeft(lanes_[0], 1) + RotateLeft(lanes_[1], 7) + RotateLeft(lanes_[2], 12) + RotateLeft(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = Merge(hash, lane);
  }
  hash += size_;

  const uint8_t* p = partial_.data();
  const uint8_t* const end = p + size_ % kStripe;
  for (; end - p >= 8; p += 8) hash = RotateLeft(hash ^ Round(0, Load64(p)), 27) * kPrime1 + kPrime4;
  if (end - p >= 4) {
    hash = RotateLeft(hash ^ (Load32(p) * kPrime1), 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p < end; ++p) hash = RotateLeft(hash ^ (*p * kPrime5), 11) * kPrime1;

  hash ^= hash >> 33;
  hash *= kPrime2;
  hash ^= hash >> 29;
  hash *= kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace tokamak::store
