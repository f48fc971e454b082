// SharedAddressFabric is soft:udp for several processes at one address, started and ended in any
// order, without any privilege.
//
// One of them holds the UDP port that peers send to, and hands packets on to the others through
// shared memory (ShmFabric), which also carries packets between them. All send for themselves, from
// ports that only send. The owner of a name holds the port; when its process ends, the others see a
// socket end, and one of them takes the name and the port. Packets on their way are lost then.
//
// Thread rule: that of the loop. The fabric must outlive its ports.
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

  // `loop` is the one that the fabric was made with. Errors are those of UdpFabric (kAlreadyExists:
  // a program of another kind has the port) and of ShmFabric.
  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override;

 private:
  os::EpollLoop& loop_;
  ShmFabric neighbours_;
  UdpFabric receiving_;
  UdpFabric sending_;
};

}  // namespace tokamak::verbs::soft
