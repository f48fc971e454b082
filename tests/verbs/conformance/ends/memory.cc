#include "tests/verbs/conformance/ends/memory.h"

#include <algorithm>

namespace tokamak::verbs::conformance {
namespace {

constexpr size_t kGuard = 64;  // bytes before and after
constexpr size_t kAlignment = 64;
constexpr uint8_t kGuardByte = 0xa5;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::vector<uint8_t> Pattern(uint64_t seed, uint64_t length, uint64_t offset) {
  std::vector<uint8_t> bytes(length);
  const uint64_t start = Mix(seed + 0x9e3779b97f4a7c15);
  uint64_t word = 0;
  for (uint64_t i = 0; i < length; ++i) {
    const uint64_t at = offset + i;
    if (i == 0 || at % 8 == 0) word = Mix(start + at / 8);
    bytes[i] = static_cast<uint8_t>(word >> (at % 8 * 8));
  }
  return bytes;
}

testing::AssertionResult Same(absl::Span<const uint8_t> bytes, absl::Span<const uint8_t> expected) {
  if (bytes.size() != expected.size()) {
    return testing::AssertionFailure() << bytes.size() << " bytes where " << expected.size() << " were expected";
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != expected[i]) {
      return testing::AssertionFailure() << "byte " << i << " of " << bytes.size() << " is " << int{bytes[i]}
                                         << ", not " << int{expected[i]};
    }
  }
  return testing::AssertionSuccess();
}

Memory::Memory(ProtectionDomain& domain, size_t size, uint64_t seed, Access access)
    : size_(size), storage_(kGuard + kAlignment + size + kGuard, kGuardByte) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(storage_.data()) + kGuard;
  start_ = kGuard + (kAlignment - address % kAlignment) % kAlignment;
  Fill(seed);
  auto region = domain.RegisterMemory(absl::MakeSpan(data(), size_), access);
  EXPECT_TRUE(region.ok()) << region.status();
  if (region.ok()) region_ = *std::move(region);
}

Memory::~Memory() {
  region_.reset();
  EXPECT_TRUE(GuardsIntact());
}

__attribute__((no_sanitize("thread"), noinline)) uint8_t Memory::Peek(size_t offset) const {
  const volatile uint8_t* const byte = storage_.data() + start_ + offset;
  return *byte;
}

void Memory::Fill(uint64_t seed) {
  seed_ = seed;
  const std::vector<uint8_t> pattern = Pattern(seed, size_);
  std::copy(pattern.begin(), pattern.end(), data());
}

testing::AssertionResult Memory::Untouched(size_t offset, size_t length) const {
  return Same(bytes(offset, length), Pattern(seed_, length, offset));
}

testing::AssertionResult Memory::GuardsIntact() const {
  for (size_t i = 0; i < storage_.size(); ++i) {
    if (i >= start_ && i < start_ + size_) continue;
    if (storage_[i] != kGuardByte) {
      return testing::AssertionFailure() << "guard byte " << static_cast<int64_t>(i - start_) << " of memory of "
                                         << size_ << " bytes was overwritten";
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace tokamak::verbs::conformance
