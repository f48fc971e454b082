// ObjectId names an object: 20 opaque bytes, as in Plasma. The application chooses them; equal ids
// mean the same object everywhere in the cluster.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tokamak::base {

class ObjectId final {
 public:
  static constexpr size_t kSize = 20;

  ObjectId() { bytes_.fill(0); }
  explicit ObjectId(const std::array<uint8_t, kSize>& bytes) : bytes_(bytes) {}

  // From 40 hexadecimal digits.
  static absl::StatusOr<ObjectId> FromHex(absl::string_view hex);

  // The id that names `name`: a 160-bit hash of it (not cryptographic), so that programs can agree
  // on names.
  static ObjectId FromName(absl::string_view name);

  std::string ToHex() const;

  const uint8_t* data() const { return bytes_.data(); }
  bool operator==(const ObjectId& other) const { return bytes_ == other.bytes_; }
  bool operator!=(const ObjectId& other) const { return bytes_ != other.bytes_; }
  bool operator<(const ObjectId& other) const { return bytes_ < other.bytes_; }

  template <typename H>
  friend H AbslHashValue(H state, const ObjectId& id) {
    return H::combine_contiguous(std::move(state), id.bytes_.data(), id.bytes_.size());
  }

 private:
  std::array<uint8_t, kSize> bytes_;
};

}  // namespace tokamak::base
