// ObjectName is the name of an object, from which its id follows, and with which it is put.
//
// So `tok ls` shows the name, and `tok rm --prefix NAME/` removes the objects of a program that was
// killed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tokamak/object_id.h"
#include "tokamak/status.h"
#include "tokamak/types.h"

namespace tokamak::example {

class ObjectName final {
 public:
  explicit ObjectName(std::string text) : text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  ObjectId id() const { return ObjectId::FromName(text_); }
  // The options for a put with this name; the rest is the default.
  PutOptions options() const {
    PutOptions named;
    named.name = text_;
    return named;
  }

 private:
  std::string text_;
};

constexpr size_t kMaxNameBytes = 64;

// Checks a user's name of a run or a request; the error names `flag`.
inline Status CheckName(const std::string& flag, const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
  if (plain && !name.empty() && name.size() <= kMaxNameBytes) return Status();
  return Status(StatusCode::kInvalidArgument,
                absl::StrCat(flag, ": a name is 1 to ", kMaxNameBytes, " of A-Z a-z 0-9 . _ and -"));
}

}  // namespace tokamak::example
