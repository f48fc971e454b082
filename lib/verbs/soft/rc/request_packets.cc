#include "lib/verbs/soft/rc/request_packets.h"

#include <algorithm>

#include "lib/verbs/soft/packets/opcodes.h"
#include "lib/verbs/soft/rc/connected_core.h"
#include "lib/verbs/soft/state/gather.h"
#include "lib/verbs/soft/state/scatter.h"

namespace tokamak::verbs::soft {

uint32_t RequestPackets::Offset(const SendSlot& slot, uint64_t sequence) const {
  return static_cast<uint32_t>((sequence - slot.first) * queue_pair_.mtu());
}

uint32_t RequestPackets::Length(const SendSlot& slot, uint64_t sequence, uint64_t packets) const {
  const uint64_t left = slot.length - Offset(slot, sequence);
  return static_cast<uint32_t>(std::min(packets * queue_pair_.mtu(), left));
}

bool RequestPackets::MayAdd(uint64_t index, uint64_t sequence) const {
  const SendSlot& slot = queue_pair_.sends.at(index);
  return MayGather(nic_state_.keys, queue_pair_.domain(), slot, Offset(slot, sequence), Length(slot, sequence));
}

Packet& RequestPackets::AddData(uint64_t index, uint64_t sequence, Share* share) {
  const SendSlot& slot = queue_pair_.sends.at(index);
  const uint32_t length = Length(slot, sequence);
  const bool first = sequence == slot.first;
  const bool last = sequence + 1 == slot.end;
  Packet& packet = queue_pair_.AddPacket(DataOpcode(slot.opcode, first, last), sequence);
  packet.remote_address = slot.remote_address;
  packet.rkey = slot.rkey;
  packet.dma_length = slot.length;
  packet.immediate = slot.immediate;
  packet.solicited = last && slot.solicited;
  share->Spend(length);
  nic_state_.outbox.LooksUntil(sequence);
  Gather(nic_state_.keys, slot, queue_pair_.sends.inline_at(index), Offset(slot, sequence), length, nic_state_.outbox,
         &packet);
  queue_pair_.OnSend(packet);
  queue_pair_.counters.bytes_sent += length;
  return packet;
}

void RequestPackets::AddRead(const SendSlot& slot, uint64_t sequence, uint32_t length, Share* share) {
  Packet& packet = queue_pair_.AddPacket(PacketOpcode::kReadRequest, sequence);
  packet.remote_address = slot.remote_address + Offset(slot, sequence);
  packet.rkey = slot.rkey;
  packet.dma_length = length;
  packet.ack_request = true;
  share->Spend(0);
  queue_pair_.OnSend(packet);
}

void RequestPackets::AddAtomic(const SendSlot& slot, uint64_t sequence, Share* share) {
  const bool swap = slot.opcode == Opcode::kCompareSwap;
  Packet& packet = queue_pair_.AddPacket(swap ? PacketOpcode::kCompareSwap : PacketOpcode::kFetchAdd, sequence);
  packet.remote_address = slot.remote_address;
  packet.rkey = slot.rkey;
  packet.swap_or_add = slot.swap_or_add;
  packet.compare = slot.compare;
  packet.ack_request = true;
  share->Spend(0);
  queue_pair_.OnSend(packet);
}

bool RequestPackets::PlaceData(const SendSlot& slot, uint64_t sequence, const Packet& answer) {
  return Scatter(nic_state_.keys, queue_pair_.domain(), absl::MakeConstSpan(slot.sges, slot.sge_count),
                 Offset(slot, sequence), answer.pieces()) == ScatterResult::kDone;
}

bool RequestPackets::PlaceResult(const SendSlot& slot, const Packet& answer) {
  const Sge& to = slot.sges[0];
  if (!nic_state_.keys.LocalAllows(queue_pair_.domain(), to, true)) return false;
  if (nic_state_.keys.IsPhantom(to.lkey)) return true;
  return nic_state_.keys.Write(nic_state_.keys.MemoryOf(to), &answer.original, sizeof(answer.original));
}

}  // namespace tokamak::verbs::soft
