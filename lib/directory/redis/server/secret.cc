#include "lib/directory/redis/server/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::directory::redis {

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

std::string Secret::Exposure() const {
  struct stat file;
  if (path_.empty() || stat(path_.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::string();
  if ((file.st_mode & (S_IROTH | S_IWOTH)) == 0) return std::string();
  return absl::StrCat("everybody on this machine may ", (file.st_mode & S_IWOTH) != 0 ? "change" : "read",
                      " the password file ", path_, ": chmod 600, or 640 for tokd's group");
}

absl::StatusOr<std::string> Secret::Read() const {
  if (path_.empty()) return text_;
  const os::FileDescriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text(kMax + 1, '\0');
  const ssize_t size = file.valid() ? read(file.get(), text.data(), text.size()) : -1;
  if (size < 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot read the password file ", path_, ": ", strerror(errno)));
  }
  text.resize(static_cast<size_t>(size));
  if (text.size() > kMax) {
    return absl::FailedPreconditionError(absl::StrCat("the password file ", path_, " has more than ", kMax, " bytes"));
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) return absl::FailedPreconditionError(absl::StrCat("the password file ", path_, " is empty"));
  return text;
}

}  // namespace tokamak::directory::redis
