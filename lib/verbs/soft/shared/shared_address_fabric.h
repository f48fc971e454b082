// SharedAddressFabric is soft:udp for several processes at one address, started and ended in any
// order, without any privilege.
//
// One of them holds the UDP port that peers send to, and hands on packets for the others, through
// memory that they share (ShmFabric); all send for themselves, from ports that only send. Packets
// between them take the same memory. The owner of the name for it holds the port; when that process
// ends, however it does, the others see a socket end, and one of them takes the name and the port.
// Packets on their way are lost then, as in any network.
//
// Thread rule: the fabric and its ports belong to the one thread of their loop. The fabric must
// outlive its ports.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/shm/shm_fabric.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::verbs::soft {

class SharedAddressFabric final : public Fabric {
 public:
  explicit SharedAddressFabric(os::EpollLoop& loop);

  // `loop` is the one that the fabric was made with. Errors: those of UdpFabric, where
  // kAlreadyExists means that a program of another kind has the port; those of ShmFabric.
  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override;

 private:
  os::EpollLoop& loop_;
  ShmFabric neighbours_;
  UdpFabric receiving_;
  UdpFabric sending_;
};

}  // namespace tokamak::verbs::soft
