// RequestPackets makes the packets of send requests, and puts the bytes of their answers in place.
//
// A packet is made from its sequence number and its started request, the first time and each time
// again: nothing of it is kept. Packet `sequence` of a request carries, or answers, one MTU of its
// bytes.
//
// Thread rule: under the NIC's mutex.
#pragma once

#include <cstdint>

#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "lib/verbs/soft/state/outbox.h"
#include "lib/verbs/soft/state/work_queue.h"

namespace tokamak::verbs::soft {

class ConnectedCore;

class RequestPackets final {
 public:
  RequestPackets(NicState& nic_state, ConnectedCore& queue_pair) : nic_state_(nic_state), queue_pair_(queue_pair) {}

  // Returns how many bytes of the request belong to these packets.
  uint32_t Length(const SendSlot& slot, uint64_t sequence, uint64_t packets = 1) const REQUIRES_NIC_MUTEX;

  // Returns true if request `index` may read the memory of this packet.
  bool MayAdd(uint64_t index, uint64_t sequence) const REQUIRES_NIC_MUTEX;

  // Add a packet to the outbox, which must have room. A READ request asks for `length` bytes from
  // packet `sequence` on.
  Packet& AddData(uint64_t index, uint64_t sequence, Share* share) REQUIRES_NIC_MUTEX;
  void AddRead(const SendSlot& slot, uint64_t sequence, uint32_t length, Share* share) REQUIRES_NIC_MUTEX;
  void AddAtomic(const SendSlot& slot, uint64_t sequence, Share* share) REQUIRES_NIC_MUTEX;

  // Writes the data of a READ, or the result of an atomic, into the memory of the request. Return
  // false if its keys or its host do not allow that.
  [[nodiscard]] bool PlaceData(const SendSlot& slot, uint64_t sequence, const Packet& answer) REQUIRES_NIC_MUTEX;
  [[nodiscard]] bool PlaceResult(const SendSlot& slot, const Packet& answer) REQUIRES_NIC_MUTEX;

 private:
  uint32_t Offset(const SendSlot& slot, uint64_t sequence) const REQUIRES_NIC_MUTEX;

  NicState& nic_state_;
  ConnectedCore& queue_pair_;
};

}  // namespace tokamak::verbs::soft
