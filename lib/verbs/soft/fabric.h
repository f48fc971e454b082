// Seam 2: a Fabric carries packets between software NICs.
//
// Implementations: udp/udp_fabric (RoCEv2 in UDP), shm/shm_fabric (one machine's memory),
// sim/sim_fabric (virtual time, seeded faults), sim/loopback_fabric (one process, real time).
//
// It may lose, duplicate, reorder and corrupt packets, never invent one.
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

// One NIC's plug. Dropping it unplugs: no packet is received after.
class Port {
 public:
  // Takes packets that arrived together; the span and the payloads live during the call only.
  using Receiver = std::function<void(absl::Span<const Packet>)>;

  virtual ~Port() = default;

  // Sends a batch, in order; larger is cheaper. Returns how many were taken; fewer than all: the
  // port is busy, and `on_ready` (see Open) runs when it takes packets again. Payloads are not read
  // after.
  //
  // Congestion notifications come in a Send of their own: a port that holds back only data (a pause
  // of one priority) still takes them.
  virtual size_t Send(absl::Span<const Packet> packets) = 0;

  // Returns how many data packets would be taken now; the NIC makes no more. A port that asks for
  // one whenever its wire is idle returns 1. SIZE_MAX: unknown. 0: none. `on_ready` runs when that
  // changes, but only after a 0 or after packets were left over.
  virtual size_t room() const { return SIZE_MAX; }

  // Returns the link's bits per second, where a packet costs EthernetBytes(); 0: unknown.
  virtual uint64_t line_rate() const { return 0; }

  // Returns the address that peers send to.
  virtual const Address& address() const = 0;

  // Joins multicast group `group` (port ignored): its packets arrive here until Leave, this port's
  // own too, with Packet::group. Sending needs no membership. Join is for ports that are not
  // members yet, Leave for members. kUnimplemented: this fabric carries no multicast.
  virtual absl::Status Join(const Address& /*group*/) {
    return absl::UnimplementedError("the network of this device carries no multicast");
  }
  virtual void Leave(const Address& /*group*/) {}

  // Returns the numbers that the NIC may give out where others share its address; fixed for the
  // port's life.
  virtual NumberShare numbers() const { return NumberShare(); }

  // Directs requests for this service ID (A11.2) here until Withdraw, among NICs that share the
  // address. kAlreadyExists: another serves it.
  virtual absl::Status Serve(uint64_t /*service_id*/) { return absl::OkStatus(); }
  virtual void Withdraw(uint64_t /*service_id*/) {}

  // Returns the largest path MTU (256 to 4096) whose packets fit the link.
  virtual uint32_t max_mtu() const = 0;

  // Returns the bytes in flight to this port beyond which it is likely to drop (a socket's buffer);
  // bounds the NIC's outstanding READs.
  virtual uint64_t receive_window() const = 0;
};

struct PortCallbacks {
  Port::Receiver on_packets;
  std::function<void()> on_ready;
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  // Plugs a NIC in. Callbacks run on `loop`, never inside Open or Send. kAlreadyExists: the address
  // is taken.
  virtual absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                                     PortCallbacks callbacks) = 0;
};

}  // namespace tokamak::verbs::soft
