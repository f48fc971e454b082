// Stream carries bytes to and from a server over a connected socket, in the clear or by TLS
// (tls.h).
//
// It never blocks: retry when the descriptor is ready.
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

  // Takes the handshake's next step. Returns true if it is done.
  virtual absl::StatusOr<bool> Shake() = 0;

  // Return the number of bytes; 0: none now. kUnavailable: ended or failed, see the text.
  virtual absl::StatusOr<size_t> Read(char* into, size_t size) = 0;
  virtual absl::StatusOr<size_t> Write(const char* from, size_t size) = 0;

  // True if it has bytes of its own to send: try again when writable.
  virtual bool awaits_room() const = 0;
  virtual int descriptor() const = 0;
};

// Sends in the clear.
std::unique_ptr<Stream> PlainStream(os::FileDescriptor socket);

absl::Status StreamEnded();
absl::Status StreamFailed(int error);

}  // namespace tokamak::directory::redis
