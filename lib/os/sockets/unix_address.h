// The path of a Unix socket in the file system: its lock, and files left by dead processes.
//
// A lock beside the path shows whether its owner lives: a process cannot die without giving it up,
// and two that start at once cannot both take each other for dead.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "lib/base/time.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/sockets/socket_access.h"

namespace tokamak::os {

// Takes the lock of `path`, held until the descriptor is closed. kAlreadyExists: another process
// has it.
absl::StatusOr<FileDescriptor> LockSocketPath(const std::string& path);

// Returns a non-blocking socket that listens at `path`, replacing a dead one. For the lock's
// holder. kAlreadyExists: a process without a lock listens there. kInvalidArgument: no path for a
// socket.
absl::StatusOr<FileDescriptor> BindSocketPath(const std::string& path, int most_waiting, SocketAccess access);

// Returns a socket that is connected to the listener at `path`. kNotFound: no such path.
// kPermissionDenied. kUnavailable: nobody listens there, or nobody accepted within `deadline`.
// kResourceExhausted: this process may have no more descriptors.
absl::StatusOr<FileDescriptor> ConnectSocketPath(const std::string& path, base::Duration deadline);

// Returns the inode of `path`; 0 if there is none.
ino_t SocketFileInode(const std::string& path);

// For the lock's holder.
void RemoveSocketFile(const std::string& path);  // and its lock
void RemoveSocketLock(const std::string& path);

}  // namespace tokamak::os
