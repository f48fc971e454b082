// ShmFabric carries packets between the NICs of one machine, or one container, through shared
// memory.
//
// Addresses are names, without an interface. NICs of one address have a NumberShare each, which a
// packet names by its queue pair number, a CM message by the ID or service in it.
//
// Only our user's or root's programs in the network namespace can send to a NIC; they are trusted
// no more than a network. No multicast.
// Thread rule: the loop's. The fabric outlives its ports.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/soft/fabric.h"

namespace tokamak::verbs::soft {

class ShmPort : public Port {
 public:
  // Hands a packet, of source `packet.peer`, to its NIC at this address. Returns false if it is for
  // this one, or none.
  virtual bool HandOn(const Packet& packet) = 0;
  // Follows the last HandOn of several.
  virtual void Publish() = 0;
};

class ShmFabric final : public Fabric {
 public:
  explicit ShmFabric(os::EpollLoop& loop) : loop_(loop) {}

  // `loop`: the fabric's. kResourceExhausted: NumberShare::kShares NICs have the address.
  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override;
  absl::StatusOr<std::unique_ptr<ShmPort>> OpenShm(const Address& address, PortCallbacks callbacks);

 private:
  os::EpollLoop& loop_;
};

}  // namespace tokamak::verbs::soft
