// Stranger is a peer who has a NIC, knows the protocol, and does not have the cluster's secret.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/daemon/devices/device.h"
#include "lib/os/epoll_loop.h"
#include "lib/transport/messages/hello.h"
#include "lib/verbs/verbs.h"

namespace tokamak::daemon {

class Stranger final {
 public:
  // At its own address of this machine.
  explicit Stranger(const std::string& device);
  ~Stranger();

  // The fate of a connection.
  struct Outcome {
    bool connected = false;
    bool rejected = false;
    bool ended = false;          // was connected, and was cut off
    uint64_t messages_came = 0;  // to us
  };

  // Connects queue pair 0 with `hello`, says `first` (empty: nothing), and looks on until it is cut
  // off, or for `limit`.
  Outcome Say(const verbs::Address& service, const transport::Hello& hello, const std::vector<uint8_t>& first,
              base::Duration limit);

  // Asks for so many connections at once, which then say nothing; they stay until the next call.
  // Returns how many came up within `limit`.
  size_t Crowd(const verbs::Address& service, transport::Hello hello, size_t count, base::Duration limit);

  // A hello with honest values.
  static transport::Hello Hello();

 private:
  static constexpr uint32_t kReceives = 8;
  static constexpr uint32_t kSlot = 16 * 1024;  // bytes

  std::unique_ptr<verbs::QueuePair> MakeQueuePair(uint32_t receives);

  os::EpollLoop loop_;
  std::unique_ptr<OpenedDevice> opened_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::vector<uint8_t> memory_;
  std::unique_ptr<verbs::MemoryRegion> region_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::vector<std::unique_ptr<verbs::QueuePair>> crowd_;
  std::vector<std::unique_ptr<verbs::Connection>> connections_;
};

}  // namespace tokamak::daemon
