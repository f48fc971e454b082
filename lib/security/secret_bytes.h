// SecretBytes is a fixed number of bytes that nobody else may see: zero at first, wiped when they
// are destroyed or moved away, and never copied or printed.
//
// The compiler cannot leave the wiping out. Copies in registers, a core file or swap are not
// reached by it. Thread rule: a plain value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>

#include "absl/types/span.h"
#include "lib/base/check.h"

namespace tokamak::security {

// Overwrites `bytes` with zeros, even if nobody reads them afterwards.
void Wipe(absl::Span<uint8_t> bytes);

template <size_t kBytes>
class SecretBytes final {
 public:
  static constexpr size_t kSize = kBytes;

  SecretBytes() = default;
  // Copies `bytes`, exactly kSize.
  explicit SecretBytes(absl::Span<const uint8_t> bytes) {
    CHECK_EQ(bytes.size(), kSize);
    for (size_t i = 0; i < kSize; ++i) bytes_[i] = bytes[i];
  }
  SecretBytes(SecretBytes&& other) noexcept { *this = std::move(other); }
  SecretBytes& operator=(SecretBytes&& other) noexcept {
    if (this == &other) return *this;
    bytes_ = other.bytes_;
    Wipe(absl::MakeSpan(other.bytes_));
    return *this;
  }
  SecretBytes(const SecretBytes&) = delete;
  SecretBytes& operator=(const SecretBytes&) = delete;
  ~SecretBytes() { Wipe(absl::MakeSpan(bytes_)); }

  // While this lives.
  absl::Span<const uint8_t> bytes() const { return bytes_; }
  absl::Span<uint8_t> writable() { return absl::MakeSpan(bytes_); }

  friend std::ostream& operator<<(std::ostream&, const SecretBytes&) = delete;

 private:
  std::array<uint8_t, kSize> bytes_{};
};

// A key of every cipher and hash here.
using Key = SecretBytes<32>;

}  // namespace tokamak::security
