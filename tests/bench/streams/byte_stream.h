// ByteStream is one end of a stream of bytes between two nodes, as a socket is one that never
// blocks; ByteStreams makes them. So what is written for sockets runs on the kernel's
// (kernel_streams.h) and in virtual time (cluster/virtual/simulated_streams.h).
//
// Law: bytes arrive whole and in order, or the stream is broken, and says so at both ends.
// Thread rule: the loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/types.h"

namespace tokamak::bench {

class ByteStream {
 public:
  // There may be something to receive, or room to send; of a stream that is broken, both.
  struct Readiness {
    bool receive = false;
    bool send = false;
  };
  using ReadyCallback = std::function<void(Readiness)>;

  // Drops unsent bytes, and breaks the peer's end. May be dropped in its callback.
  virtual ~ByteStream() = default;

  // Once, before all else. `on_ready` runs in turns of the loop of its own, as long as something
  // that is wanted (Want; at first both) is so.
  virtual void Start(ReadyCallback on_ready) = 0;
  virtual void Want(Readiness wanted) = 0;

  // How much of `parts`, in their order, was taken: 0 where there is no room now, or the connection
  // is not there yet. kUnavailable: broken.
  virtual absl::StatusOr<size_t> Send(absl::Span<const absl::Span<const uint8_t>> parts) = 0;

  // How much came, up to the size of `into`, which is not empty; 0: nothing now. kUnavailable:
  // broken, or closed by the peer.
  virtual absl::StatusOr<size_t> Receive(absl::Span<uint8_t> into) = 0;
};

struct StreamOptions {
  bool no_delay = false;  // small pieces need not wait for an acknowledgement
  uint32_t buffer = 0;    // bytes at each end; 0: the system's own choice
};

// An address that peers connect to. Dropping it ends that, and no stream.
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  virtual const verbs::Address& address() const = 0;
};

// Outlives what it made.
class ByteStreams {
 public:
  using AcceptCallback = std::function<void(std::unique_ptr<ByteStream>)>;

  virtual ~ByteStreams() = default;

  // Listens at this host's address, on a port of the system's choice. `on_accept` runs for each
  // stream that a peer opens.
  virtual absl::StatusOr<std::unique_ptr<StreamListener>> Listen(const StreamOptions& options,
                                                                 AcceptCallback on_accept) = 0;

  // Without a listener the stream breaks soon.
  virtual absl::StatusOr<std::unique_ptr<ByteStream>> Connect(const verbs::Address& to,
                                                              const StreamOptions& options) = 0;
};

}  // namespace tokamak::bench
