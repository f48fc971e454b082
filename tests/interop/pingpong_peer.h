// The protocol of ibv_rc_pingpong of rdma-core, in both of its roles: a connection that is made by
// hand, without a connection manager.
//
// Both ends tell each other over TCP where their queue pairs are, 52 bytes of text with a 0 behind,
// and walk them:
//
//   client                                              server
//     | "LID:number:PSN:GID", hexadecimal ---------------> |  walks to ReadyToSend
//     | <------------------------------------ the same     |
//     | "done" ------------------------------------------> |
//   walks to ReadyToSend
//     | SEND --------------------------------------------> |
//     | <---------------------------------------- SEND     |  and so on
//
// ibv_rc_pingpong sends from the memory that it receives into: what we send, new bytes each time,
// comes back and is compared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/types.h"
#include "tests/interop/link.h"

namespace tokamak::interop {

// One end's message to the other.
struct Introduction {
  uint32_t number = 0;  // of its queue pair, 24 bits
  uint32_t psn = 0;     // the first that it sends, 24 bits
  verbs::Address address;
};
std::string ToText(const Introduction& introduction);
absl::StatusOr<Introduction> ParseIntroduction(absl::string_view text);

// A listener for clients: a TCP port, 0 for any, of `address`.
class Door final {
 public:
  static absl::StatusOr<Door> Open(const verbs::Address& address, base::Duration patience);
  uint16_t port() const { return port_; }
  absl::StatusOr<os::FileDescriptor> Admit();  // the next client

 private:
  Door(os::FileDescriptor socket, uint16_t port) : socket_(std::move(socket)), port_(port) {}

  os::FileDescriptor socket_;
  uint16_t port_;
};
absl::StatusOr<os::FileDescriptor> Knock(const verbs::Address& door, base::Duration patience);

struct PingpongOptions {
  uint32_t size = 4096;  // bytes of a message
  uint32_t count = 1000;
  uint32_t path_mtu = 1024;
  bool echo = false;  // as ibv_rc_pingpong does: sends what it received last, and compares nothing
};

class PingpongPeer final {
 public:
  // `address` is the device's own.
  static absl::StatusOr<std::unique_ptr<PingpongPeer>> Prepare(Link& link, const verbs::Address& address,
                                                               const PingpongOptions& options);

  // Whole conversations, over the TCP connection `tcp`.
  absl::Status Serve(const os::FileDescriptor& tcp);
  absl::Status Ask(const os::FileDescriptor& tcp);

 private:
  PingpongPeer(Link& link, const PingpongOptions& options)
      : link_(link), options_(options), sent_(options.size), received_(options.size) {}

  absl::StatusOr<Introduction> Hear(const os::FileDescriptor& tcp);
  absl::Status Say(const os::FileDescriptor& tcp);
  absl::Status Walk(const Introduction& peer);
  absl::Status SendNext();
  absl::Status AwaitNext(bool first);
  void Settle();

  Link& link_;
  const PingpongOptions options_;
  Introduction own_;
  std::vector<uint8_t> sent_;
  std::vector<uint8_t> received_;
  std::unique_ptr<verbs::MemoryRegion> sent_region_;
  std::unique_ptr<verbs::MemoryRegion> received_region_;
  uint64_t seed_ = 0;  // of what was sent last
};

}  // namespace tokamak::interop
