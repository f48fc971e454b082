// Outbox collects the packets of one turn, of all queue pairs, and gives them to the port in one
// batch.
//
// Packets that a busy port did not take wait here, with payloads in their owners' memory. They are
// taken out, lost to the peer, before the right to read that ends: the queue pair goes to Error or
// away, a region is revoked, or an earlier copy is acknowledged.
// Thread rule: the NIC's mutex; Flush on the NIC's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::verbs::soft {

// The most that a queue pair's turn adds: as much as a UDP socket takes in one piece.
struct Share {
  uint32_t packets = 32;
  uint32_t bytes = 15 * kMaxMtu;

  bool spent() const { return packets == 0 || bytes == 0; }
  void Spend(uint32_t payload) {
    --packets;
    bytes -= payload < bytes ? payload : bytes;
  }
};

class Outbox final {
 public:
  static constexpr size_t kCapacity = 128;  // by default

  explicit Outbox(size_t capacity = kCapacity) : packets_(capacity), claims_(capacity) {}

  bool empty() const { return begin_ == end_; }
  bool full() const { return at_capacity() || size() >= limit_; }
  bool at_capacity() const { return end_ == packets_.size(); }
  size_t size() const { return end_ - begin_; }

  // Bounds the packets that wait; those that wait already stay.
  void set_limit(size_t limit) { limit_ = limit; }

  // Adds a packet, for which there must be room. `owner` is a queue pair number.
  Packet& Add(uint32_t owner) {
    claims_[end_].owner = owner;
    claims_[end_].keys = 0;
    claims_[end_].sequence = kNever;
    Packet& packet = packets_[end_++];
    packet.Reset();
    return packet;
  }

  // Notes that the packet added last reads memory by the right of `key`.
  void Uses(uint32_t key) {
    Claim& claim = claims_[end_ - 1];
    claim.key[claim.keys++] = key;
  }

  // Notes that the packet added last reads memory that goes back to its owner once `sequence` is
  // acknowledged.
  void LooksUntil(uint64_t sequence) { claims_[end_ - 1].sequence = sequence; }

  // Lets the packet added last, which reads no memory, leave even without its queue pair.
  void LeavesAnyway() { claims_[end_ - 1].owner = kNobody; }

  absl::Span<const Packet> waiting() const { return absl::MakeConstSpan(packets_).subspan(begin_, size()); }

  size_t CountOf(uint32_t owner) const;

  // Returns how many packets `port` took.
  size_t Flush(Port& port);

  // Take out the packets of a queue pair, or those that read memory by right of a key; return how
  // many.
  size_t DropOwner(uint32_t owner);
  size_t DropKey(uint32_t key);

  // Does the same for a queue pair's packets of sequences before `unacknowledged`, whose memory
  // went back to its owner.
  size_t DropAcknowledged(uint32_t owner, uint64_t unacknowledged);

 private:
  static constexpr uint64_t kNever = UINT64_MAX;
  static constexpr uint32_t kNobody = UINT32_MAX;  // queue pair numbers have 24 bits

  template <typename Condemned>
  size_t Drop(Condemned condemned);

  struct Claim {
    uint32_t owner = 0;
    uint32_t keys = 0;
    uint64_t sequence = kNever;
    std::array<uint32_t, kMaxPayloadSlices> key;
  };

  std::vector<Packet> packets_;
  std::vector<Claim> claims_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t limit_ = SIZE_MAX;
};

}  // namespace tokamak::verbs::soft
