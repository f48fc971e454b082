// PayloadMemory is the memory that transfers are sent from and arrive in, the same for all NICs:
// bytes with a pattern, or, for phantom payload, addresses with nothing behind them.
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

  // The flags that a region of it needs beside its rights.
  verbs::Access flags() const { return phantom_ ? verbs::kPhantom : verbs::kLocalRead; }

  // Checks that the first `bytes` bytes have arrived as they were sent.
  void Expect(uint32_t bytes);
  bool Right() const;

 private:
  const size_t bytes_;
  const bool phantom_;
  uint32_t expected_ = 0;
  uint8_t* base_;
};

}  // namespace tokamak::sim
