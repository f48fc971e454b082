// Seam 2: a Fabric carries packets between software NICs.
//
// The reliable-connection protocol above it is written once. Implementations: udp/udp_fabric
// (RoCEv2 in UDP datagrams), sim/sim_fabric (virtual time, seeded faults) and sim/loopback_fabric
// (NICs of one process, in real time).
//
// A fabric may lose, duplicate, reorder and corrupt packets, as a network does; it never invents
// one that was not sent.
// Thread rule: a port is used from the thread of its NIC's event loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/number_share.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// One NIC's plug in the fabric. Dropping it unplugs: nothing is received after.
class Port {
 public:
  // Packets that arrived together. The span and the payloads live during the call only.
  using Receiver = std::function<void(absl::Span<const Packet>)>;

  virtual ~Port() = default;

  // Sends a batch, in order: the more at once, the cheaper. Returns how many were taken; fewer than
  // all means that the port is busy for now: `on_ready` (see Open) runs when it takes packets
  // again. Payloads are not looked at after the call.
  //
  // Congestion notifications come in a Send of their own. A port that can hold back data alone (a
  // pause of one priority) takes them all the same; so one class may be busy and the other not.
  virtual size_t Send(absl::Span<const Packet> packets) = 0;

  // At most this many packets of data would be taken now, so the NIC makes no more: a port that
  // asks for one packet whenever its wire is idle says 1. SIZE_MAX: it does not say. 0: none, and
  // `on_ready` runs when that changes; whoever has neither been told 0 nor had packets left over is
  // not called.
  virtual size_t room() const { return SIZE_MAX; }

  // Bits per second of the link, on which each packet costs EthernetBytes(); 0: not known.
  virtual uint64_t line_rate() const { return 0; }

  // The address that peers send to.
  virtual const Address& address() const = 0;

  // From now on, until Leave, packets to the multicast group `group` arrive here, with
  // Packet::group: those of other ports, and those that this one sends. Sending to a group needs no
  // membership. `group` is not a member yet (Leave: is one); its port is not looked at.
  // kUnimplemented: this fabric carries no multicast.
  virtual absl::Status Join(const Address& /*group*/) {
    return absl::UnimplementedError("the network of this device carries no multicast");
  }
  virtual void Leave(const Address& /*group*/) {}

  // Which numbers the NIC may give out, where others have its address. The same for the port's life.
  virtual NumberShare numbers() const { return NumberShare(); }

  // From now on, until Withdraw, what asks for the service of this ID (A11.2) arrives here, of all
  // NICs that share the address. kAlreadyExists: one of the others serves it.
  virtual absl::Status Serve(uint64_t /*service_id*/) { return absl::OkStatus(); }
  virtual void Withdraw(uint64_t /*service_id*/) {}

  // The largest path MTU (256 to 4096) whose packets fit the link below.
  virtual uint32_t max_mtu() const = 0;

  // Bytes that may be in flight towards this port before the receiving side is likely to drop (a
  // socket's buffer, say); the NIC bounds the READs that it has outstanding by it.
  virtual uint64_t receive_window() const = 0;
};

struct PortCallbacks {
  Port::Receiver on_packets;
  std::function<void()> on_ready;
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  // Plugs a NIC in. Both callbacks run on `loop`, never inside Open or Send. kAlreadyExists: the
  // address is taken.
  virtual absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                                     PortCallbacks callbacks) = 0;
};

}  // namespace tokamak::verbs::soft
