// PeerDesk is where `tok doctor --listen` tells a doctor on another host, over plain TCP, how its
// device is reached. That answers first whether the hosts reach each other at all, and lets --peer
// name the host as people do, not as the fabric does.
//
// The desk only talks: it reads nothing from whoever connects, and hangs up. The asking side takes
// nothing for granted: at most kMaxHello bytes, by a deadline.
// Thread rule: the loop's; AskPeer blocks, for at most its deadline and the name service.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/types.h"

namespace tokamak::cli::doctor {

constexpr uint16_t kPeerPort = 7099;
constexpr size_t kMaxHello = 4096;  // bytes

struct PeerHello {
  std::string device;       // "ibv:rxe1"
  verbs::Address service;   // of its PingPongResponder
  uint32_t active_mtu = 0;  // bytes
  uint32_t netdev_mtu = 0;  // bytes; 0: not known
  bool by_tcp = false;      // its connections are made as by tokd --cm tcp, else by rdma_cm

  std::string Encode() const;
  static absl::StatusOr<PeerHello> Decode(const std::string& text);
};

class PeerDesk final {
 public:
  // Listens on all addresses. kAlreadyExists: the port is taken.
  static absl::StatusOr<std::unique_ptr<PeerDesk>> Open(os::EpollLoop& loop, uint16_t port, const PeerHello& hello);

  uint16_t port() const { return port_; }

 private:
  explicit PeerDesk(std::string words) : words_(std::move(words)) {}
  void Answer();

  const std::string words_;
  os::FileDescriptor socket_;
  uint16_t port_ = 0;
  os::FdWatch watch_;
};

// Connects to the desk at `host`, a name or an address. kNotFound: no such name; kUnavailable:
// nobody listens; kDeadlineExceeded: no answer.
absl::StatusOr<PeerHello> AskPeer(const std::string& host, uint16_t port, base::Duration deadline);

}  // namespace tokamak::cli::doctor
