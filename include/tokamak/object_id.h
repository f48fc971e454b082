// ObjectId names an object: 20 opaque bytes, as in Plasma. The application chooses them; equal ids
// mean the same object everywhere in the cluster.
//
// Thread rule: a plain value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tokamak {

class ObjectId final {
 public:
  static constexpr size_t kSize = 20;  // bytes

  // All zero: an id like any other.
  ObjectId() { bytes_.fill(0); }
  explicit ObjectId(const std::array<uint8_t, kSize>& bytes) : bytes_(bytes) {}

  // From 40 hexadecimal digits, in small or capital letters; nothing where it is anything else.
  static std::optional<ObjectId> FromHex(std::string_view hex);

  // The id that names `name`: a 160-bit hash of it (not cryptographic), so that programs can agree
  // on names. The same in every release; docs/client-protocol.md defines it.
  static ObjectId FromName(std::string_view name);

  std::string ToHex() const;

  const uint8_t* data() const { return bytes_.data(); }  // kSize bytes
  bool operator==(const ObjectId& other) const { return bytes_ == other.bytes_; }
  bool operator!=(const ObjectId& other) const { return bytes_ != other.bytes_; }
  bool operator<(const ObjectId& other) const { return bytes_ < other.bytes_; }

  // For Abseil's containers.
  template <typename H>
  friend H AbslHashValue(H state, const ObjectId& id) {
    return H::combine_contiguous(std::move(state), id.bytes_.data(), id.bytes_.size());
  }

 private:
  std::array<uint8_t, kSize> bytes_;
};

}  // namespace tokamak

// For the containers of the standard library. An id is no secret, and who chooses ids so that they
// collide slows down its own program.
template <>
struct std::hash<tokamak::ObjectId> {
  size_t operator()(const tokamak::ObjectId& id) const {
    uint64_t words[3] = {};
    std::memcpy(words, id.data(), tokamak::ObjectId::kSize);
    uint64_t mixed = 0;
    for (const uint64_t word : words) {
      mixed = (mixed ^ word) * 0x9e3779b97f4a7c15;
      mixed ^= mixed >> 32;
    }
    return static_cast<size_t>(mixed);
  }
};
