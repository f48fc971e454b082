// The path of a Unix socket in the file system: its lock, and files left by dead processes.
//
// The lock beside it shows whether its owner lives: death gives it up, and two that start at once
// cannot take each other for dead.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "lib/base/time.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/sockets/socket_access.h"

namespace tokamak::os {

// Locks until the descriptor is closed. kAlreadyExists: another process has it.
absl::StatusOr<FileDescriptor> LockSocketPath(const std::string& path);

// Returns a non-blocking listener, replacing a dead one. For the lock's holder. kAlreadyExists: a
// process without a lock listens there. kInvalidArgument: no path for a socket.
absl::StatusOr<FileDescriptor> BindSocketPath(const std::string& path, int most_waiting, SocketAccess access);

// Connects. kNotFound: no such path. kPermissionDenied. kUnavailable: nobody listens there, or
// accepted within `deadline`. kResourceExhausted: this process may have no more descriptors.
absl::StatusOr<FileDescriptor> ConnectSocketPath(const std::string& path, base::Duration deadline);

// Returns 0 without such a path.
ino_t SocketFileInode(const std::string& path);

// For the lock's holder.
void RemoveSocketFile(const std::string& path);  // and its lock
void RemoveSocketLock(const std::string& path);

}  // namespace tokamak::os
