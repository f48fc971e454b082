#include "lib/os/sockets/unix_address.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/os/path_remedies.h"

namespace tokamak::os {
namespace {

constexpr mode_t kMode = S_IRUSR | S_IWUSR;

std::string LockPath(const std::string& path) { return path + ".lock"; }

absl::Status SystemError(const std::string& what, int error = errno, const std::string& remedy = "") {
  const std::string text = absl::StrCat(what, ": ", std::strerror(error), remedy);
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  if (error == EMFILE) return absl::ResourceExhaustedError(absl::StrCat(text, ": close some, or raise ulimit -n"));
  return absl::UnavailableError(text);
}

absl::Status CannotMake(const std::string& path, int error) {
  return SystemError(absl::StrCat("cannot make a socket at ", path), error, ListenRemedy(path, error));
}

absl::Status InUse(const std::string& path) {
  return absl::AlreadyExistsError(
      absl::StrCat("another process listens at ", path, ": stop it or choose another path"));
}

absl::StatusOr<sockaddr_un> ToAddress(const std::string& path) {
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a socket's path has 1 to ", sizeof(address.sun_path) - 1, " bytes: '", path, "'"));
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

FileDescriptor NewSocket(int flags) { return FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)); }

int ConnectTo(const FileDescriptor& socket, const sockaddr_un& address) {
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

// Removes a socket that a dead process left at `path`.
absl::Status RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat file;
  if (lstat(path.c_str(), &file) != 0) return absl::OkStatus();
  if (!S_ISSOCK(file.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " exists and is no socket: choose another path"));
  }
  // A program that takes no lock may listen there.
  const FileDescriptor probe = NewSocket(SOCK_NONBLOCK);
  if (ConnectTo(probe, address) == 0 || errno == EAGAIN) return InUse(path);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return SystemError(absl::StrCat("cannot replace ", path));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FileDescriptor> LockSocketPath(const std::string& path) {
  if (const auto address = ToAddress(path); !address.ok()) return address.status();
  for (;;) {
    FileDescriptor lock(open(LockPath(path).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode));
    if (!lock.valid()) return CannotMake(path, errno);
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      return errno == EWOULDBLOCK ? InUse(path) : SystemError(absl::StrCat("cannot lock ", LockPath(path)));
    }
    // Its last holder may have removed it between our two calls: then it locks nothing.
    struct stat held, named;
    if (fstat(lock.get(), &held) != 0) return SystemError("fstat");
    if (stat(LockPath(path).c_str(), &named) == 0 && held.st_ino == named.st_ino) return lock;
  }
}

absl::StatusOr<FileDescriptor> BindSocketPath(const std::string& path, int most_waiting, SocketAccess access) {
  const absl::StatusOr<sockaddr_un> address = ToAddress(path);
  if (!address.ok()) return address.status();
  if (absl::Status s = RemoveStale(path, *address); !s.ok()) return s;
  FileDescriptor socket = NewSocket(SOCK_NONBLOCK);
  // The file gets the socket's mode: at no moment is it open to others.
  if (!socket.valid() || fchmod(socket.get(), kMode) != 0 ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return CannotMake(path, errno);
  }
  // Widened afterwards: in bind the umask narrows the mode, for a service to its user alone.
  // Another user who may write in the folder may have put a link there meanwhile: its target is not
  // ours to open.
  const bool shared = access == SocketAccess::kUser ||
                      fchmodat(AT_FDCWD, path.c_str(), kMode | S_IRGRP | S_IWGRP, AT_SYMLINK_NOFOLLOW) == 0;
  if (!shared || listen(socket.get(), most_waiting) != 0) {
    const absl::Status status = SystemError(absl::StrCat("cannot listen at ", path));
    unlink(path.c_str());
    return status;
  }
  return socket;
}

absl::StatusOr<FileDescriptor> ConnectSocketPath(const std::string& path, base::Duration deadline) {
  const absl::StatusOr<sockaddr_un> address = ToAddress(path);
  if (!address.ok()) return address.status();
  FileDescriptor socket = NewSocket(0);
  if (!socket.valid()) return SystemError("cannot make a socket");
  // Waits only for room in the backlog; 0 would be for ever.
  const int64_t wait = std::max<int64_t>(1, deadline.microseconds());
  const timeval limit = {wait / 1'000'000, wait % 1'000'000};
  if (setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0) return SystemError("SO_SNDTIMEO");
  while (ConnectTo(socket, *address) != 0) {
    const int error = errno;
    if (error != EINTR) return SystemError(absl::StrCat("cannot connect to ", path), error, ConnectRemedy(path, error));
  }
  return socket;
}

ino_t SocketFileInode(const std::string& path) {
  struct stat file;
  return lstat(path.c_str(), &file) == 0 ? file.st_ino : 0;
}

void RemoveSocketFile(const std::string& path) {
  unlink(path.c_str());
  RemoveSocketLock(path);
}

void RemoveSocketLock(const std::string& path) { unlink(LockPath(path).c_str()); }

}  // namespace tokamak::os
