#include "lib/directory/redis/server/secret.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/os/private_file.h"

namespace tokamak::directory::redis {
namespace {

constexpr char kWhat[] = "the password file";

}  // namespace

Secret Secret::FromText(std::string text) {
  Secret secret;
  secret.text_ = std::move(text);
  return secret;
}

Secret Secret::FromFile(std::string path) {
  Secret secret;
  secret.path_ = std::move(path);
  return secret;
}

std::string Secret::Exposure() const { return path_.empty() ? std::string() : os::ExposureOf(kWhat, path_); }

absl::StatusOr<std::string> Secret::Read() const {
  if (path_.empty()) return text_;
  auto text = os::ReadPrivateFile(kWhat, path_, kMax);
  if (!text.ok()) return text;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->empty()) return absl::FailedPreconditionError(absl::StrCat(kWhat, " ", path_, " is empty"));
  return text;
}

}  // namespace tokamak::directory::redis
