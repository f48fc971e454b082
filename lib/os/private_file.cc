#include "lib/os/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::os {
namespace {

bool WriteAll(int file, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(file) == 0;
}

}  // namespace

absl::StatusOr<std::string> ReadPrivateFile(const std::string& what, const std::string& path, size_t most) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text(most + 1, '\0');
  const ssize_t size = file.valid() ? read(file.get(), text.data(), text.size()) : -1;
  if (size < 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot read ", what, " ", path, ": ", strerror(errno)));
  }
  text.resize(static_cast<size_t>(size));
  if (text.size() <= most) return text;
  return absl::FailedPreconditionError(absl::StrCat(what, " ", path, " has more than ", most, " bytes"));
}

std::string ExposureOf(const std::string& what, const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::string();
  if ((file.st_mode & (S_IROTH | S_IWOTH)) == 0) return std::string();
  return absl::StrCat("everybody on this machine may ", (file.st_mode & S_IWOTH) != 0 ? "change " : "read ", what, " ",
                      path, ": chmod 600, or 640 for tokd's group");
}

absl::Status CreatePrivateFile(const std::string& path, absl::string_view text) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) {
    const std::string why = absl::StrCat("cannot make ", path, ": ", strerror(errno));
    return errno == EEXIST ? absl::AlreadyExistsError(why) : absl::FailedPreconditionError(why);
  }
  if (WriteAll(file.get(), text)) return absl::OkStatus();
  const std::string why = absl::StrCat("cannot write ", path, ": ", strerror(errno));
  unlink(path.c_str());
  return absl::FailedPreconditionError(why);
}

}  // namespace tokamak::os
