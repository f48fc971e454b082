// The protocol of rping of rdma-core, in both of its roles, over any of our devices.
//
// Debian's rping, a program that knows nothing of us, is the stranger that our devices are tried
// against; this is its other half. A ping is
//
//   client                                          server
//     | SEND {address, key, size} of its source ----> |
//     | <------------------------------- READ of it   |
//     | <------------------------------------- SEND   |  go ahead (its contents mean nothing)
//     | SEND {address, key, size} of its sink ------> |
//     | <--------------------- WRITE of what it read  |
//     | <------------------------------------- SEND   |  go ahead
//
// Each SEND has 16 bytes: address 8, key 4, size 4, big-endian. There is no private data. A client
// leaves by disconnecting. Bytes are those that rping fills in, so both sides know what is to come,
// and we compare (rping itself only as a client, with -V).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/verbs/types.h"
#include "tests/interop/link.h"

namespace tokamak::interop {

// The bounds of rping's --size: both ends of a connection need the same size.
constexpr uint32_t kMinPing = 32;
constexpr uint32_t kMaxPing = 64 * 1024 - 1;

// "rdma-ping-N: " and letters, each ping beginning one letter further; the last byte is 0.
std::string PingText(uint32_t ping, uint32_t size);

class RpingPeer final {
 public:
  // Makes `link` ready for pings of up to `size` bytes. Before it is connected.
  static absl::StatusOr<std::unique_ptr<RpingPeer>> Prepare(Link& link, uint32_t size);

  // The client, connected: `count` pings, each compared. It is the caller that disconnects.
  absl::Status Ping(uint32_t count);

  // The server, connected: answers pings until the client leaves, or `most` are answered. Returns
  // how many were, each compared. A network that loses packets needs `most`: rping destroys its
  // connection as soon as it has disconnected, and the kernel does not repeat the request then.
  absl::StatusOr<uint32_t> Serve(std::optional<uint32_t> most = std::nullopt);

 private:
  struct Place {
    uint64_t address = 0;
    uint32_t rkey = 0;
    uint32_t size = 0;
  };

  explicit RpingPeer(Link& link, uint32_t size);

  absl::Status Advertise(const verbs::Sge& piece, uint32_t rkey);
  absl::StatusOr<Place> AwaitMessage();
  absl::Status Answer(uint32_t ping, const Place& source);
  absl::Status GoAhead();
  absl::Status Move(verbs::Opcode opcode, const Place& place);

  Link& link_;
  std::vector<uint8_t> message_out_;
  std::vector<uint8_t> message_in_;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> sink_;  // of the server: what it reads into and writes from
  std::unique_ptr<verbs::MemoryRegion> message_out_region_;
  std::unique_ptr<verbs::MemoryRegion> message_in_region_;
  std::unique_ptr<verbs::MemoryRegion> source_region_;
  std::unique_ptr<verbs::MemoryRegion> sink_region_;
};

}  // namespace tokamak::interop
