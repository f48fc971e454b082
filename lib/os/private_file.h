// A private file has something in it that other users must not know: a password, a secret.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace tokamak::os {

// Returns the text of the file, which `what` names in errors ("the password file"). The caller
// wipes it, if need be. kFailedPrecondition: it cannot be read, or has more than `most` bytes.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& what, const std::string& path, size_t most);

// Returns in one line why other users may read or change the file; empty: they may not, or it is no
// file.
std::string ExposureOf(const std::string& what, const std::string& path);

// Makes a file that only this user may read, and writes `text` into it. kAlreadyExists: there is
// one. Errors leave none.
absl::Status CreatePrivateFile(const std::string& path, absl::string_view text);

}  // namespace tokamak::os
