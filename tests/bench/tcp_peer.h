// TcpPeer is another process at the far end of a TCP connection on loopback: what RDMA is compared
// with.
//
// It does one thing after another, as asked: bring bytes, swallow a stream, send a message back.
// Only the kernel's TCP takes part (TCP_NODELAY, default buffers). Thread rule: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::bench {

class TcpPeer final {
 public:
  // Forks: while this process has one thread. The peer ends with this object, and with this
  // process.
  static absl::StatusOr<std::unique_ptr<TcpPeer>> Start();
  ~TcpPeer();
  TcpPeer(const TcpPeer&) = delete;
  TcpPeer& operator=(const TcpPeer&) = delete;

  // A request, and a reply that fills `to`.
  absl::Status Fetch(absl::Span<uint8_t> to);

  // Sends messages of `message` bytes from `arena`, round and round, for `seconds`; the peer
  // receives them into an arena of the same size. Returns bytes a second, up to the arrival of the
  // last.
  absl::StatusOr<double> Stream(absl::Span<const uint8_t> arena, uint64_t message, double seconds);

  // Sends messages of `size` bytes to and fro for `seconds`; returns half of each round trip, in
  // seconds. With `busy` neither side sleeps: both ask again and again.
  absl::StatusOr<std::vector<double>> PingPong(uint64_t size, bool busy, double seconds);

 private:
  TcpPeer(os::FileDescriptor socket, pid_t process) : socket_(std::move(socket)), process_(process) {}

  os::FileDescriptor socket_;
  const pid_t process_;
};

}  // namespace tokamak::bench
