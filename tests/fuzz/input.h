// Input turns a fuzzer's bytes into choices: how a target that is fed steps rather than bytes reads
// its program.
//
// At the end of the bytes everything is zero, false or empty, so each input means something and
// ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"

namespace tokamak::fuzz {

class Input final {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }

  template <typename T>
  T Take() {
    T value = 0;
    const size_t size = std::min(sizeof(T), rest_.size());
    if (size > 0) std::memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return value;
  }
  bool Flag() { return (Take<uint8_t>() & 1) != 0; }

  // One of `choices`, at most 256; takes one byte.
  uint32_t Below(uint32_t choices) { return Take<uint8_t>() % choices; }

  // At most `most` bytes; their number is read first, from two bytes.
  absl::Span<const uint8_t> Bytes(size_t most) {
    const size_t size = std::min<size_t>({Take<uint16_t>(), most, rest_.size()});
    const absl::Span<const uint8_t> bytes = rest_.first(size);
    rest_.remove_prefix(size);
    return bytes;
  }
  absl::Span<const uint8_t> Rest() {
    const absl::Span<const uint8_t> bytes = rest_;
    rest_ = {};
    return bytes;
  }

 private:
  absl::Span<const uint8_t> rest_;
};

}  // namespace tokamak::fuzz
