// Writer and Reader turn values into bytes and back: little-endian, fixed widths, a length before
// strings and byte runs.
//
// For messages off the data path (directory calls, the client protocol). A Reader trusts no input:
// it never reads beyond its bytes, and from the first field that does not fit on it returns zeros,
// so a decoder checks Complete() once, at the end.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/base/bytes.h"
#include "lib/base/object_id.h"

namespace tokamak::base {

class Writer final {
 public:
  Writer() { bytes_.reserve(kFirstRoom); }

  template <typename T>
  void Integer(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    StoreLittle<T>(bytes_.data() + at, value);
  }
  void Id(const ObjectId& id) { Raw({id.data(), ObjectId::kSize}); }
  void Raw(absl::Span<const uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  // Puts a 32-bit length before.
  void Bytes(absl::Span<const uint8_t> bytes) {
    Integer(static_cast<uint32_t>(bytes.size()));
    Raw(bytes);
  }
  void Text(absl::string_view text) { Bytes({reinterpret_cast<const uint8_t*>(text.data()), text.size()}); }

  size_t size() const { return bytes_.size(); }
  absl::Span<const uint8_t> bytes() const { return bytes_; }
  std::vector<uint8_t> Take() { return std::move(bytes_); }

 private:
  static constexpr size_t kFirstRoom = 128;  // bytes: usually one allocation

  std::vector<uint8_t> bytes_;
};

class Reader final {
 public:
  // `bytes` outlives the reader and the results of Bytes().
  explicit Reader(absl::Span<const uint8_t> bytes) : rest_(bytes) {}

  template <typename T>
  T Integer() {
    const absl::Span<const uint8_t> raw = Raw(sizeof(T));
    return raw.empty() ? T{0} : LoadLittle<T>(raw.data());
  }
  ObjectId Id() {
    std::array<uint8_t, ObjectId::kSize> id{};
    const absl::Span<const uint8_t> raw = Raw(id.size());
    if (!raw.empty()) std::memcpy(id.data(), raw.data(), id.size());
    return ObjectId(id);
  }

  // Reads a length and as many bytes. Fails beyond `limit`.
  absl::Span<const uint8_t> Bytes(size_t limit) {
    const uint32_t length = Integer<uint32_t>();
    if (length > limit) return Fail();
    return Raw(length);
  }
  std::string Text(size_t limit) {
    const absl::Span<const uint8_t> bytes = Bytes(limit);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // Reads a count of items that take at least `least_size` bytes each. Fails beyond `limit`, or
  // if fewer bytes are left than they would take: no decoder reserves memory for a false count.
  uint32_t Count(size_t limit, size_t least_size) {
    const uint32_t count = Integer<uint32_t>();
    if (count <= limit && uint64_t{count} * least_size <= rest_.size()) return count;
    Fail();
    return 0;
  }

  bool ok() const { return ok_; }
  size_t rest() const { return rest_.size(); }

  // True if all fields fitted, and no bytes are left.
  bool Complete() const { return ok_ && rest_.empty(); }

 private:
  absl::Span<const uint8_t> Raw(size_t size) {
    if (!ok_ || size > rest_.size()) return Fail();
    const absl::Span<const uint8_t> raw = rest_.first(size);
    rest_.remove_prefix(size);
    return raw;
  }
  absl::Span<const uint8_t> Fail() {
    ok_ = false;
    rest_ = {};
    return {};
  }

  absl::Span<const uint8_t> rest_;
  bool ok_ = true;
};

}  // namespace tokamak::base
