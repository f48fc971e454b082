// ObjectName is the name that an object's id was made of (ObjectId::FromName), or none.
//
// Law: a name is that of its id, UTF-8 without control characters, of at most kMaxSize bytes: For
// alone makes one, so it may always be shown.
// Memory: a pointer, and for a name its bytes and one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/object_id.h"

namespace tokamak::base {

class ObjectName final {
 public:
  static constexpr size_t kMaxSize = 255;  // bytes: as a file's name, counted in a byte

  ObjectName() = default;  // none
  ObjectName(const ObjectName& other) { *this = other; }
  ObjectName(ObjectName&&) noexcept = default;
  ObjectName& operator=(const ObjectName& other);
  ObjectName& operator=(ObjectName&&) noexcept = default;

  // Returns the name, empty for none. kInvalidArgument: another id's, or one that cannot be kept.
  static absl::StatusOr<ObjectName> For(const ObjectId& id, absl::string_view name);
  // Returns For's status.
  static absl::Status Check(const ObjectId& id, absl::string_view name);

  // True for UTF-8 without control characters, not empty, not too long.
  static bool MayBeKept(absl::string_view name);

  absl::string_view text() const;  // while this lives
  bool empty() const { return bytes_ == nullptr; }
  size_t memory() const { return empty() ? 0 : 1 + size_t{bytes_[0]}; }  // bytes beside the pointer

  bool operator==(const ObjectName& other) const { return text() == other.text(); }
  bool operator!=(const ObjectName& other) const { return !(*this == other); }

 private:
  explicit ObjectName(absl::string_view text);

  std::unique_ptr<uint8_t[]> bytes_;  // length, then the name
};

}  // namespace tokamak::base
