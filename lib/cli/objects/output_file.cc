#include "lib/cli/objects/output_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::cli {

namespace fs = std::filesystem;

namespace {

constexpr size_t kStep = 4 << 20;  // bytes between updates of the bar
constexpr int kMostLinks = 40;     // in a chain, as in the kernel
constexpr int kMostNames = 100;    // tried for the temporary file

struct Target {
  enum class Kind { kFile, kThrough, kStandardOutput };
  Kind kind = Kind::kFile;
  std::string path;
};

// The kernel takes a link of /proc straight to an open file, whatever its text.
bool IsLinkOfProc(const std::string& link) {
  const os::FileDescriptor file(open(link.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct statfs info {};
  return file.valid() && fstatfs(file.get(), &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

bool LeadsToStandardOutput(const std::string& path) {
  struct stat there {};
  struct stat ours {};
  return stat(path.c_str(), &there) == 0 && fstat(STDOUT_FILENO, &ours) == 0 && there.st_dev == ours.st_dev &&
         there.st_ino == ours.st_ino;
}

absl::StatusOr<Target> Follow(const std::string& path) {
  if (path == "-") return Target{Target::Kind::kStandardOutput, path};
  std::string at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    struct stat info {};
    if (lstat(at.c_str(), &info) != 0) {
      if (errno == ENOENT) return Target{Target::Kind::kFile, at};
      return FileError("write", path);
    }
    if (S_ISREG(info.st_mode)) return Target{Target::Kind::kFile, at};
    if (S_ISDIR(info.st_mode)) return absl::FailedPreconditionError(absl::StrCat(path, " is a folder, not a file"));
    if (!S_ISLNK(info.st_mode)) return Target{Target::Kind::kThrough, at};
    if (IsLinkOfProc(at)) {
      return Target{LeadsToStandardOutput(at) ? Target::Kind::kStandardOutput : Target::Kind::kThrough, at};
    }
    std::error_code error;
    const fs::path next = fs::read_symlink(at, error);
    if (error) return absl::UnknownError(absl::StrCat("cannot follow the link ", at, ": ", error.message()));
    at = (fs::path(at).parent_path() / next).string();  // an absolute one replaces the folder
  }
  errno = ELOOP;
  return FileError("write", path);
}

// Another name each try: never somebody else's file.
std::string PartName(const std::string& path, int attempt) {
  const std::string part = absl::StrCat(path, ".part", getpid());
  return attempt == 0 ? part : absl::StrCat(part, "-", attempt);
}

absl::Status WriteOnce(int file, absl::Span<const uint8_t>& rest, const std::string& path) {
  const ssize_t put = write(file, rest.data(), std::min(rest.size(), kStep));
  if (put > 0) rest.remove_prefix(static_cast<size_t>(put));
  if (put > 0 || (put < 0 && errno == EINTR)) return absl::OkStatus();
  if (put == 0 || errno != EAGAIN) return FileError("write", path);
  // Standard output made non-blocking by another.
  pollfd writable = {file, POLLOUT, 0};
  poll(&writable, 1, -1);
  return absl::OkStatus();
}

}  // namespace

absl::Status FileError(const std::string& verb, const std::string& path) {
  const std::string text = absl::StrCat("cannot ", verb, " ", path, ": ", std::strerror(errno));
  if (errno == ENOENT) return absl::NotFoundError(text);
  if (errno == EACCES || errno == EPERM) return absl::PermissionDeniedError(text);
  return absl::UnknownError(text);
}

bool IsStandardOutput(const std::string& path) {
  const auto target = Follow(path);
  return target.ok() && target->kind == Target::Kind::kStandardOutput;
}

absl::StatusOr<OutputFile> OutputFile::Open(const std::string& path, mode_t mode, Undo& undo) {
  const auto target = Follow(path);
  if (!target.ok()) return target.status();
  if (target->kind != Target::Kind::kFile) {
    os::FileDescriptor file(target->kind == Target::Kind::kStandardOutput
                                ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                                : open(target->path.c_str(), O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC));
    if (!file.valid()) return FileError("write", path);
    return OutputFile(path, "", std::move(file));
  }
  for (int attempt = 0;; ++attempt) {
    const std::string part = PartName(target->path, attempt);
    os::FileDescriptor file;
    bool taken = false;
    const absl::Status made = undo.Do(
        [&] {
          file = os::FileDescriptor(open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
          taken = !file.valid() && errno == EEXIST;
          return file.valid() ? absl::OkStatus() : FileError("write", part);
        },
        [part] { return unlink(part.c_str()) == 0 || errno == ENOENT ? absl::OkStatus() : FileError("remove", part); });
    if (made.ok()) return OutputFile(target->path, part, std::move(file));
    if (!taken || attempt == kMostNames) return made;
  }
}

absl::Status OutputFile::Write(absl::Span<const uint8_t> bytes, Progress& progress) {
  absl::Span<const uint8_t> rest = bytes;
  while (!rest.empty()) {
    const size_t before = rest.size();
    if (absl::Status status = WriteOnce(file_.get(), rest, path_); !status.ok()) return status;
    progress.Advance(before - rest.size());
  }
  // Some file systems report lack of room only here.
  return close(file_.Release()) == 0 ? absl::OkStatus() : FileError("write", path_);
}

absl::Status OutputFile::Publish() const {
  if (part_.empty() || rename(part_.c_str(), path_.c_str()) == 0) return absl::OkStatus();
  return FileError("write", path_);
}

}  // namespace tokamak::cli
