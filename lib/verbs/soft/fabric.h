// Seam 2: a Fabric carries packets between software NICs.
//
// Implementations: udp/udp_fabric (RoCEv2 in UDP datagrams), shm/shm_fabric (memory of one
// machine), sim/sim_fabric (virtual time, seeded faults) and sim/loopback_fabric (one process, in
// real time).
//
// A fabric may lose, duplicate, reorder and corrupt packets; it never invents one.
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

// One NIC's plug in the fabric. Dropping it unplugs: no packet is received after.
class Port {
 public:
  // Packets that arrived together; the span and the payloads live during the call only.
  using Receiver = std::function<void(absl::Span<const Packet>)>;

  virtual ~Port() = default;

  // Sends a batch, in order: the larger, the cheaper. Returns how many packets were taken; fewer
  // than all: the port is busy, and `on_ready` (see Open) runs when it takes packets again.
  // Payloads are not read after the call.
  //
  // Congestion notifications come in a Send of their own, which a port that holds back data alone
  // (a pause of one priority) still takes.
  virtual size_t Send(absl::Span<const Packet> packets) = 0;

  // The most packets of data that would be taken now; the NIC makes no more. A port that asks for
  // one packet whenever its wire is idle returns 1. SIZE_MAX: unknown. 0: none; `on_ready` runs
  // when that changes, but only after a 0 or after packets were left over.
  virtual size_t room() const { return SIZE_MAX; }

  // Bits per second of the link, where each packet costs EthernetBytes(); 0: unknown.
  virtual uint64_t line_rate() const { return 0; }

  // The address that peers send to.
  virtual const Address& address() const = 0;

  // Joins the multicast group `group` (its port is ignored): until Leave its packets arrive here,
  // with Packet::group, this port's own too. Sending needs no membership. Join: not a member yet;
  // Leave: a member. kUnimplemented: this fabric carries no multicast.
  virtual absl::Status Join(const Address& /*group*/) {
    return absl::UnimplementedError("the network of this device carries no multicast");
  }
  virtual void Leave(const Address& /*group*/) {}

  // The numbers that the NIC may give out where others have its address. Fixed for the port's life.
  virtual NumberShare numbers() const { return NumberShare(); }

  // Directs requests for this service ID (A11.2) here until Withdraw, among the NICs that share the
  // address. kAlreadyExists: another one serves it.
  virtual absl::Status Serve(uint64_t /*service_id*/) { return absl::OkStatus(); }
  virtual void Withdraw(uint64_t /*service_id*/) {}

  // The largest path MTU (256 to 4096) whose packets fit the link below.
  virtual uint32_t max_mtu() const = 0;

  // Bytes in flight towards this port beyond which the receiving side is likely to drop (a socket's
  // buffer, say); bounds the NIC's outstanding READs.
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
