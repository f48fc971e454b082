// SimFabric is a network in virtual time that misbehaves from a seed: it delays, loses, duplicates,
// reorders and damages packets, and can be cut in parts.
//
// Each ordered pair of addresses is a link with options, a bandwidth and a Random stream of its
// own, independent of others. A multicast takes the link to each member. Packets arrive at the port
// that has the address then, also after a restart. While a NIC's processor is busy they wait in its
// receive buffer, to be handed over in one batch.
//
// Law: the same calls with the same seed give the same packets at the same times.
// Law: a payload is copied during Send.
// Law: a delivered packet was sent; it is delivered at most twice, with duplication.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/time.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

struct LinkOptions {
  base::Duration latency = base::Microseconds(2);  // after the last byte has left
  base::Duration jitter;                           // up to this much more, in order
  int64_t picoseconds_per_byte = 0;                // 80: 100 Gb/s; 0: no bound
  uint64_t queue_bytes = 0;                        // to leave; the rest is dropped; 0: no bound
  // Probabilities, for each packet.
  double loss = 0;
  double duplicate = 0;
  double corrupt = 0;
  double reorder = 0;
  base::Duration reorder_delay = base::Microseconds(20);  // up to this much later, and overtaken
};

struct SimFabricOptions {
  LinkOptions link;                   // default
  uint32_t max_mtu = verbs::kMaxMtu;  // of every port
  uint64_t receive_buffer = 8 << 20;  // bytes at a port, the rest is dropped; half is receive_window()
};

// In packets.
// Law: sent + duplicated == delivered + the dropped ones + those in flight or in a buffer.
struct SimFabricCounters {
  uint64_t sent = 0;
  uint64_t duplicated = 0;
  uint64_t reordered = 0;
  uint64_t corrupted = 0;
  uint64_t delivered = 0;
  uint64_t lost = 0;            // by chance
  uint64_t dropped_cut = 0;     // cut at departure or arrival
  uint64_t dropped_queue = 0;   // link full
  uint64_t dropped_buffer = 0;  // receiver full
  uint64_t dropped_nobody = 0;  // nobody had the address, or it had left the group
};

// Port 0 is opened at RoCE's 4791; as a destination, it is the sender's own.
class SimFabric final : public verbs::soft::Fabric {
 public:
  using Address = verbs::Address;

  // `loop`: the network's own. Drops are recorded in `trace`: node is the sender's number in order
  // of opening. Both must outlive the fabric, and the fabric its ports.
  SimFabric(base::EventLoop& loop, uint64_t seed, const SimFabricOptions& options, base::Trace& trace);
  ~SimFabric() override;

  absl::StatusOr<std::unique_ptr<verbs::soft::Port>> Open(base::EventLoop& loop, const Address& address,
                                                          verbs::soft::PortCallbacks callbacks) override;

  // Takes effect for later packets in this direction.
  void SetLink(const Address& from, const Address& to, const LinkOptions& options);
  // Takes effect also for links with options of their own.
  void SetAllLinks(const LinkOptions& options);

  // See Network.
  void Cut(const Address& from, const Address& to);
  void Mend(const Address& from, const Address& to);

  void Partition(absl::Span<const Address> side);

  void Heal();

  const SimFabricCounters& counters() const { return counters_; }
  // Packets neither delivered nor dropped yet.
  uint64_t in_flight() const { return flights_.size() - free_flights_.size(); }

 private:
  class SimPort;

  struct Link {
    Address from;
    Address to;
    LinkOptions options;
    base::Random random;
    base::Time free_at;       // when the last byte has left
    base::Time last_arrival;  // of the packets that keep their order
    bool cut = false;
  };

  // On its way, or in a port's receive buffer; reused.
  struct Flight {
    verbs::soft::Packet packet;
    std::vector<uint8_t> payload;
    uint32_t bytes = 0;  // on the wire
    uint32_t sender = 0;
    const Link* link = nullptr;
    base::Timer timer;
  };

  Link& LinkBetween(const Address& from, const Address& to);
  bool Connected(const Link& link) const;
  void Send(const SimPort& sender, const verbs::soft::Packet& packet);
  void SendOn(Link& link, const SimPort& sender, const verbs::soft::Packet& packet);
  void Launch(Link& link, const SimPort& sender, const verbs::soft::Packet& packet, base::Time left);
  bool Wants(const Flight& flight);
  void Arrive(size_t flight);
  void Drop(uint64_t* counter, uint32_t sender, const verbs::soft::Packet& packet);

  size_t TakeFlight();
  void FreeFlight(size_t flight);

  base::EventLoop& loop_;
  const base::Random random_;
  SimFabricOptions options_;
  base::Trace& trace_;
  SimFabricCounters counters_;
  uint32_t ports_opened_ = 0;
  std::map<Address, SimPort*> ports_;
  std::map<std::array<uint8_t, 16>, std::set<Address>> groups_;  // members of each
  std::map<std::pair<Address, Address>, Link> links_;            // at stable addresses
  std::set<Address> side_;                                       // of the partition
  std::deque<Flight> flights_;
  std::vector<size_t> free_flights_;
};

}  // namespace tokamak::sim
