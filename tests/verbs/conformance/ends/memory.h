// Memory that a device may touch, filled with patterns and watched for bytes that should not have
// changed.
//
// The registered range lies between two guards that are not registered; they are checked when the
// Memory goes. A pattern is a function of its seed and the offset, so equal seeds give equal bytes
// and any shift or swap of bytes shows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::conformance {

constexpr Access kEverything = kLocalWrite | kRemoteWrite | kRemoteRead;

// `length` bytes of the pattern, from `offset` on.
std::vector<uint8_t> Pattern(uint64_t seed, uint64_t length, uint64_t offset = 0);

// Names the first byte that differs.
testing::AssertionResult Same(absl::Span<const uint8_t> bytes, absl::Span<const uint8_t> expected);

class Memory final {
 public:
  // Filled with pattern `seed`.
  Memory(ProtectionDomain& domain, size_t size, uint64_t seed, Access access = kEverything);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  uint8_t* data() { return storage_.data() + start_; }
  size_t size() const { return size_; }
  absl::Span<const uint8_t> bytes() const { return absl::MakeConstSpan(storage_.data() + start_, size_); }
  absl::Span<const uint8_t> bytes(size_t offset, size_t length) const { return bytes().subspan(offset, length); }

  // One byte that the device may be writing just now: how a program looks that polls memory. A race
  // by design, which the thread sanitizer is not shown.
  uint8_t Peek(size_t offset) const;

  // 0 when it could not be registered (the test has then failed already) or is not any more.
  uint32_t lkey() const { return region_ == nullptr ? 0 : region_->lkey(); }
  uint32_t rkey() const { return region_ == nullptr ? 0 : region_->rkey(); }
  MemoryRegion* region() { return region_.get(); }

  Sge piece(size_t offset, size_t length) { return {data() + offset, static_cast<uint32_t>(length), lkey()}; }
  Sge whole() { return piece(0, size_); }
  uint64_t remote(size_t offset = 0) { return reinterpret_cast<uint64_t>(data() + offset); }

  void Fill(uint64_t seed);

  // Ends the registration; the bytes stay.
  void Deregister() { region_.reset(); }

  // The bytes are still those of the last Fill.
  testing::AssertionResult Untouched() const { return Untouched(0, size_); }
  testing::AssertionResult Untouched(size_t offset, size_t length) const;

  // The bytes are those of pattern `seed`, from its beginning.
  testing::AssertionResult Holds(uint64_t seed) const { return Same(bytes(), Pattern(seed, size_)); }

 private:
  testing::AssertionResult GuardsIntact() const;

  const size_t size_;
  uint64_t seed_ = 0;
  size_t start_ = 0;  // of the registered range
  std::vector<uint8_t> storage_;
  std::unique_ptr<MemoryRegion> region_;
};

}  // namespace tokamak::verbs::conformance
