// The half of Responder that answers.
#include <algorithm>

#include "lib/verbs/soft/psn.h"
#include "lib/verbs/soft/queue_pair_core.h"
#include "lib/verbs/soft/responder.h"
#include "lib/verbs/soft/syndrome.h"

namespace tokamak::verbs::soft {

bool Responder::Emit(Share* share) {
  if (ended_due_) {
    if (engine_.outbox.full()) return true;
    ended_due_ = false;
    EmitAcknowledge(ended_->syndrome, ended_due_at_);
    return false;
  }
  if (!running_) return false;
  while (!responses_.empty()) {
    if (share->spent() || engine_.outbox.full()) return true;
    Response& response = responses_.front();
    if (!EmitResponse(response, share)) continue;
    if (response.position == response.end) responses_.PopFront();
  }
  if (fault_) {
    // Going to Error takes packets out of the outbox again: first the answers must be gone.
    if (engine_.outbox.Holds(queue_pair_.number())) return true;
    const Fault fault = *fault_;
    End(fault);
    return true;
  }
  if (nak_due_ == 0 && !ack_due_) return false;
  if (engine_.outbox.full()) return true;
  if (nak_due_ != 0) {
    EmitAcknowledge(nak_due_, expected_);
  } else {
    EmitAcknowledge(kAck, expected_ - 1);
  }
  nak_due_ = 0;
  ack_due_ = false;
  return false;
}

// One packet of `response`. Returns false when it cannot be answered any more.
bool Responder::EmitResponse(Response& response, Share* share) {
  if (response.position + 1 == expected_) ack_due_ = false;  // this packet says it too
  if (response.atomic) {
    Packet& packet = queue_pair_.AddPacket(PacketOpcode::kAtomicAcknowledge, response.position);
    packet.syndrome = kAck;
    packet.msn = response.msn;
    packet.original = response.original;
    share->Spend(0);
    ++response.position;
    return true;
  }
  const uint32_t mtu = queue_pair_.mtu();
  const uint64_t offset = (response.position - response.base) * mtu;
  const uint32_t length = static_cast<uint32_t>(std::min<uint64_t>(mtu, response.length - offset));
  const uint8_t* memory = nullptr;
  if (length > 0) {
    memory = engine_.keys.Remote(queue_pair_.asker(), response.key, response.address + offset, length, kRemoteRead);
    if (memory == nullptr) {
      RefuseResponse(response);
      return false;
    }
  }
  const bool first = response.position == response.first;
  const bool last = response.position + 1 == response.end;
  const PacketOpcode opcode = first ? (last ? PacketOpcode::kReadResponseOnly : PacketOpcode::kReadResponseFirst)
                                    : (last ? PacketOpcode::kReadResponseLast : PacketOpcode::kReadResponseMiddle);
  Packet& packet = queue_pair_.AddPacket(opcode, response.position);
  if (HasAeth(opcode)) {
    packet.syndrome = kAck;
    packet.msn = response.msn;
  }
  if (length > 0) {
    packet.payload[packet.slices++] = {memory, length};
    engine_.outbox.Uses(response.key);
    engine_.outbox.Uses(engine_.keys.RegionOf(response.key));
  }
  queue_pair_.counters.bytes_sent += length;
  share->Spend(length);
  ++response.position;
  return true;
}

// The region or window of a READ went away while it was being answered.
void Responder::RefuseResponse(const Response& response) {
  const Fault fault{kRemoteAccessNak, response.position, CompletionStatus::kFlushed};
  if (response.replay) {
    // A late duplicate may ask for memory that the owner has long taken back: no reason to end the connection here.
    responses_.PopFront();
    if (!engine_.outbox.full()) EmitAcknowledge(fault.syndrome, fault.sequence);
    return;
  }
  responses_.Clear();
  fault_ = fault;
}

void Responder::EmitAcknowledge(uint8_t syndrome, uint64_t sequence) {
  QueuePairCounters& counters = queue_pair_.counters;
  switch (syndrome) {
    case kAck:
      ++counters.acks_sent;
      break;
    case kSequenceNak:
      ++counters.naks_sent_sequence;
      break;
    case kInvalidRequestNak:
      ++counters.naks_sent_invalid_request;
      break;
    case kRemoteAccessNak:
      ++counters.naks_sent_remote_access;
      break;
    case kRemoteOperationNak:
      ++counters.naks_sent_remote_operation;
      break;
    default:
      ++counters.naks_sent_not_ready;
  }
  Packet& packet = queue_pair_.AddPacket(PacketOpcode::kAcknowledge, sequence);
  packet.syndrome = syndrome;
  packet.msn = msn_;
}

}  // namespace tokamak::verbs::soft
