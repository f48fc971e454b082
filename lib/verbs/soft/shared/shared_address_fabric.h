// SharedAddressFabric is soft:udp for several processes at one address, started and ended in any
// order, without any privilege.
//
// One process holds the UDP port and hands packets on through shared memory (ShmFabric), which also
// carries packets between them; all send for themselves, from ports that only send. The port is
// held by the owner of a name; when it ends, the others see a socket end, and one takes name and
// port.
//
// Thread rule: the loop's. The fabric outlives its ports.
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

  // `loop`: the fabric's. Errors of UdpFabric (kAlreadyExists: a program of another kind has the
  // port) and of ShmFabric.
  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override;

 private:
  os::EpollLoop& loop_;
  ShmFabric neighbours_;
  UdpFabric receiving_;
  UdpFabric sending_;
};

}  // namespace tokamak::verbs::soft
