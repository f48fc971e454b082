#include "lib/base/text/object_name.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"

namespace tokamak::base {

static_assert(ObjectName::kMaxSize <= UINT8_MAX, "one byte counts them");

absl::StatusOr<ObjectName> ObjectName::For(const ObjectId& id, absl::string_view name) {
  if (absl::Status s = Check(id, name); !s.ok()) return s;
  return name.empty() ? ObjectName() : ObjectName(name);
}

absl::Status ObjectName::Check(const ObjectId& id, absl::string_view name) {
  if (name.empty()) return absl::OkStatus();
  if (name.size() > kMaxSize) {
    return absl::InvalidArgumentError(absl::StrCat("a name of ", name.size(), " bytes is too long to be kept (at most ",
                                                   kMaxSize, "): put the object without it"));
  }
  if (!MayBeKept(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name '", Printable(name),
                     "' cannot be kept, as it has control characters or is no UTF-8: put the object without it"));
  }
  const ObjectId named = ObjectId::FromName({name.data(), name.size()});
  if (named == id) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the name '", name, "' is not that of object ", id.ToHex(),
                                                 ": make the id of it, which is ", named.ToHex(),
                                                 ", or put the object without it"));
}

bool ObjectName::MayBeKept(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxSize && IsPrintable(name);
}

ObjectName::ObjectName(absl::string_view text) : bytes_(new uint8_t[1 + text.size()]) {
  bytes_[0] = static_cast<uint8_t>(text.size());
  std::memcpy(&bytes_[1], text.data(), text.size());
}

ObjectName& ObjectName::operator=(const ObjectName& other) {
  if (this != &other) *this = other.empty() ? ObjectName() : ObjectName(other.text());
  return *this;
}

absl::string_view ObjectName::text() const {
  return empty() ? absl::string_view() : absl::string_view(reinterpret_cast<const char*>(&bytes_[1]), bytes_[0]);
}

}  // namespace tokamak::base
