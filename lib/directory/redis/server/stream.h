// Stream carries bytes to and from a server over a connected socket, in the clear or by TLS
// (tls.h).
//
// It never blocks: an unfinished step is retried when the descriptor is ready.
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::directory::redis {

class Stream {
 public:
  virtual ~Stream() = default;

  // Takes the next step of the handshake. Returns true if it is done: then bytes may go.
  virtual absl::StatusOr<bool> Shake() = 0;

  // Return the number of bytes; 0: none now. kUnavailable: the stream has ended or failed, see the
  // text.
  virtual absl::StatusOr<size_t> Read(char* into, size_t size) = 0;
  virtual absl::StatusOr<size_t> Write(const char* from, size_t size) = 0;

  // True if it has bytes of its own to send: try again when the descriptor is writable.
  virtual bool awaits_room() const = 0;
  virtual int descriptor() const = 0;
};

// Sends bytes in the clear.
std::unique_ptr<Stream> PlainStream(os::FileDescriptor socket);

// Errors of both kinds of stream.
absl::Status StreamEnded();
absl::Status StreamFailed(int error);

}  // namespace tokamak::directory::redis
