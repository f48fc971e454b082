// Stream carries bytes to and from a server, over a socket that is connected: as they are, or by
// TLS (tls.h).
//
// Nothing waits: what cannot be done now is done when its descriptor is ready again.
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

  // Takes the next step of agreeing with the other end on how to speak. Returns whether that is
  // done: then bytes may go.
  virtual absl::StatusOr<bool> Shake() = 0;

  // How many bytes; 0: none now. kUnavailable: it has ended, or says what went wrong.
  virtual absl::StatusOr<size_t> Read(char* into, size_t size) = 0;
  virtual absl::StatusOr<size_t> Write(const char* from, size_t size) = 0;

  // It has something of its own to send as soon as the descriptor can be written to: try again then.
  virtual bool awaits_room() const = 0;
  virtual int descriptor() const = 0;
};

// Bytes as they are.
std::unique_ptr<Stream> PlainStream(os::FileDescriptor socket);

// For errors of both kinds.
absl::Status StreamEnded();
absl::Status StreamFailed(int error);

}  // namespace tokamak::directory::redis
