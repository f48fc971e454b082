// PayloadMemory is the source and sink of all NICs' transfers: bytes with a pattern, or, for
// phantom payload, addresses with nothing behind.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

class PayloadMemory final {
 public:
  PayloadMemory(uint32_t bytes, bool phantom);
  ~PayloadMemory();
  PayloadMemory(const PayloadMemory&) = delete;
  PayloadMemory& operator=(const PayloadMemory&) = delete;

  absl::Span<uint8_t> source() const { return {base_, bytes_}; }
  absl::Span<uint8_t> sink() const { return {base_ + bytes_, bytes_}; }

  // Beside a region's rights.
  verbs::Access flags() const { return phantom_ ? verbs::kPhantom : verbs::kLocalRead; }

  // Checks the first `bytes`.
  void Expect(uint32_t bytes);
  bool Right() const;

 private:
  const size_t bytes_;
  const bool phantom_;
  uint32_t expected_ = 0;
  uint8_t* base_;
};

}  // namespace tokamak::sim
