// ShmFabric carries packets between the NICs of one machine, or one container, through shared
// memory.
//
// Addresses are names here, and need no interface. Several NICs may have one, each with its own
// NumberShare: a packet's queue pair number, or the ID or service in a CM message, says which of
// them it is for.
//
// Only programs of our user, or of root, in the same network namespace can send to a NIC; they are
// trusted no more than a network. There is no multicast.
// Thread rule: that of the loop. The fabric must outlive its ports.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/soft/fabric.h"

namespace tokamak::verbs::soft {

class ShmPort : public Port {
 public:
  // Hands a packet that came another way, from `packet.peer`, to the NIC at this address that it is
  // for. Returns false if it is for this one, or for none.
  virtual bool HandOn(const Packet& packet) = 0;
  // Called after the last of several HandOn.
  virtual void Publish() = 0;
};

class ShmFabric final : public Fabric {
 public:
  explicit ShmFabric(os::EpollLoop& loop) : loop_(loop) {}

  // `loop` is the one that the fabric was made with. kResourceExhausted: NumberShare::kShares NICs
  // have the address already.
  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override;
  absl::StatusOr<std::unique_ptr<ShmPort>> OpenShm(const Address& address, PortCallbacks callbacks);

 private:
  os::EpollLoop& loop_;
};

}  // namespace tokamak::verbs::soft
