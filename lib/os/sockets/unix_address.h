// The path of a Unix socket in the file system: who holds it, and what a dead process left there.
//
// A lock beside the path says whether its owner lives: no process can die without giving it up, and
// two that start at once cannot both think that the other is dead.
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

// A socket that listens at `path` and does not block, in place of one that nobody listens at any
// more. For the holder of the lock. kAlreadyExists: somebody without a lock listens there.
// kInvalidArgument: no path for a socket.
absl::StatusOr<FileDescriptor> BindSocketPath(const std::string& path, int most_waiting, SocketAccess access);

// A socket that is connected to who listens at `path`. kNotFound: no such path. kPermissionDenied.
// kUnavailable: nobody listens there, or nobody accepted within `deadline`. kResourceExhausted:
// this process may have no more descriptors.
absl::StatusOr<FileDescriptor> ConnectSocketPath(const std::string& path, base::Duration deadline);

// Which file `path` is now; 0 where there is none.
ino_t SocketFileInode(const std::string& path);

// For the holder of the lock.
void RemoveSocketFile(const std::string& path);  // and its lock
void RemoveSocketLock(const std::string& path);

}  // namespace tokamak::os
