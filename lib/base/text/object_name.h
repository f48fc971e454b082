// ObjectName is the name that an object's id was made of (ObjectId::FromName), or none.
//
// Law: a name is that of its id, UTF-8 without control characters, of at most kMaxSize bytes: For
// alone makes one, so it may always be shown.
// An empty one costs a pointer; a name costs its bytes and one more beside it. Thread rule: a plain
// value.
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
  static constexpr size_t kMaxSize = 255;  // bytes: as long as a file's name, and one byte counts them

  ObjectName() = default;  // none
  ObjectName(const ObjectName& other) { *this = other; }
  ObjectName(ObjectName&&) noexcept = default;
  ObjectName& operator=(const ObjectName& other);
  ObjectName& operator=(ObjectName&&) noexcept = default;

  // Returns the name of the object `id`; an empty one is none. kInvalidArgument: it is another
  // id's, or cannot be kept.
  static absl::StatusOr<ObjectName> For(const ObjectId& id, absl::string_view name);
  // Returns the status that For would.
  static absl::Status Check(const ObjectId& id, absl::string_view name);

  // True if a name can be kept with the id that is made of it: UTF-8 without control characters,
  // neither empty nor too long.
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
