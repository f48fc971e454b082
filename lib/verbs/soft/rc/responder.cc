#include "lib/verbs/soft/rc/responder.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/verbs/soft/rc/connected_core.h"
#include "lib/verbs/soft/rc/psn.h"
#include "lib/verbs/soft/rc/syndrome.h"
#include "lib/verbs/soft/state/scatter.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

// READs and atomics that may be asked for again. A peer that exceeds its depth must hear that in
// its turn, not wait for an answer that it lost.
constexpr size_t kLeastRemembered = 16;

uint64_t AtomicallyUpdate(uint8_t* memory, const Packet& packet) {
  uint64_t* word = reinterpret_cast<uint64_t*>(memory);
  if (packet.opcode == PacketOpcode::kFetchAdd) return __atomic_fetch_add(word, packet.swap_or_add, __ATOMIC_SEQ_CST);
  uint64_t original = packet.compare;
  __atomic_compare_exchange_n(word, &original, packet.swap_or_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return original;
}

}  // namespace

Responder::Responder(NicState& nic_state, ConnectedCore& queue_pair)
    : nic_state_(nic_state), queue_pair_(queue_pair), receives_(nic_state, queue_pair) {}

void Responder::Start(uint32_t psn) {
  const size_t served = std::max<size_t>(1, queue_pair_.reliability().reads_served);
  expected_ = FirstSequence(psn);
  msn_ = 0;
  message_ = Message::kNone;
  responses_.Reserve(2 * served + 2);
  served_.Reserve(std::max(served, kLeastRemembered));
  running_ = true;
}

void Responder::OnRequest(const Packet& packet) {
  if (fault_) {
    ++queue_pair_.counters.requests_refused;
    return;
  }
  const uint64_t sequence = ExtendPsn(packet.psn, expected_);
  if (sequence < expected_) {
    OnDuplicate(packet, sequence);
    return;
  }
  if (sequence > expected_) {
    OnGap(packet, sequence);
    return;
  }
  if (queue_pair_.watched && queue_pair_.state() == QueuePairState::kReadyToReceive) {
    nic_state_.on_first_data(queue_pair_.number());
    if (!running_) {
      ++queue_pair_.counters.requests_refused;
      return;
    }
  }
  Take(packet);
  if (!held_.empty()) TakeHeld();
}

void Responder::Take(const Packet& packet) {
  gap_told_ = false;
  nak_due_ = 0;
  if (!Execute(packet)) {
    ++queue_pair_.counters.requests_rejected;
    return;
  }
  ++queue_pair_.counters.requests_executed;
  if (!packet.ack_request) return;
  const bool may_wait = IsOnly(packet.opcode) && IsSend(packet.opcode) && AnswersFirst();
  ack_due_ = true;
  if (may_wait && nic_state_.options.ack_delay > base::Duration()) return queue_pair_.MarkPatientAnswer();
  OweAnswer();
}

// Takes held packets whose turn has come; a NAK names the next gap.
void Responder::TakeHeld() {
  while (running_ && !fault_ && nak_due_ == 0) {
    const uint64_t sequence = expected_;
    const Packet* const packet = held_.Find(sequence);
    if (packet == nullptr) break;
    --queue_pair_.counters.requests_held;
    held_.Drop(sequence);  // stays in place until the next Put
    Take(*packet);
  }
  if (!running_ || held_.empty() || nak_due_ != 0) return;
  nak_due_ = kSequenceNak;
  OweAnswer();
}

bool Responder::Execute(const Packet& packet) {
  if (IsSend(packet.opcode)) return ExecuteSend(packet);
  if (IsWrite(packet.opcode)) return ExecuteWrite(packet);
  if (message_ != Message::kNone) return Refuse(kInvalidRequestNak);
  if (packet.opcode == PacketOpcode::kReadRequest) return ExecuteRead(packet);
  if (IsAtomic(packet.opcode)) return ExecuteAtomic(packet);
  return Refuse(kInvalidRequestNak);
}

// Returns true if a packet of `kind` may come here and has the length that its place in the message
// demands (9.7.4.1).
bool Responder::FitsMessage(const Packet& packet, Message kind) {
  if (message_ != (Begins(packet.opcode) ? Message::kNone : kind)) return false;
  const uint32_t length = packet.payload_length();
  const uint32_t mtu = queue_pair_.mtu();
  if (!Ends(packet.opcode)) return length == mtu;
  if (IsOnly(packet.opcode)) return length <= mtu;
  return length >= 1 && length <= mtu;
}

bool Responder::ExecuteSend(const Packet& packet) {
  if (!FitsMessage(packet, Message::kSend)) return Refuse(kInvalidRequestNak);
  if (Begins(packet.opcode)) {
    if (!receives_.available()) return NotReady();
    receives_.Take();
    message_ = Message::kSend;
    bytes_ = 0;
  }
  const ReceiveSlot& slot = receives_.present();
  const uint32_t length = packet.payload_length();
  if (length > slot.length - bytes_) return Refuse(kInvalidRequestNak, CompletionStatus::kLocalLength);
  const bool invalidates = HasIeth(packet.opcode);
  if (invalidates && !nic_state_.keys.IsWindowOf(queue_pair_.asker(), packet.rkey)) return Refuse(kRemoteAccessNak);
  switch (Scatter(nic_state_.keys, queue_pair_.domain(), absl::MakeConstSpan(slot.sges, slot.sge_count), bytes_,
                  packet.pieces())) {
    case ScatterResult::kDone:
      break;
    case ScatterResult::kNoKey:
      return Refuse(kRemoteOperationNak, CompletionStatus::kLocalProtection);
    case ScatterResult::kNotWritable:
      return Refuse(kRemoteOperationNak, CompletionStatus::kLocalAccess);
  }
  bytes_ += length;
  ++expected_;
  if (!Ends(packet.opcode)) return true;
  if (invalidates) Invalidate(packet.rkey);
  message_ = Message::kNone;
  msn_ = (msn_ + 1) & kPsnMask;
  CompleteReceive(packet, CompletionOpcode::kReceive, bytes_);
  return true;
}

// Takes back the key of a window bound for the peer. Answers that wait and need it are lost.
void Responder::Invalidate(uint32_t key) {
  CHECK(nic_state_.keys.Invalidate(queue_pair_.domain(), key));
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropKey(key);
}

bool Responder::ExecuteWrite(const Packet& packet) {
  if (!FitsMessage(packet, Message::kWrite)) return Refuse(kInvalidRequestNak);
  if ((queue_pair_.remote_access() & kRemoteWrite) == 0) return Refuse(kInvalidRequestNak);
  if (Begins(packet.opcode)) {
    bytes_ = 0;
    write_address_ = packet.remote_address;
    write_key_ = packet.rkey;
    write_length_ = packet.dma_length;
    if (write_length_ > kMaxMessage) return Refuse(kInvalidRequestNak);
  }
  const bool ends = Ends(packet.opcode);
  const uint32_t length = packet.payload_length();
  const uint32_t left = write_length_ - bytes_;
  if (ends ? length != left : length >= left) return Refuse(kInvalidRequestNak);
  if (ends && HasImmediate(packet.opcode) && !receives_.available()) return NotReady();
  if (write_length_ > 0) {
    // The whole range is checked when it begins, so that no byte is written unless all may be; then
    // piece by piece, since a region may go away meanwhile.
    const bool begins = Begins(packet.opcode);
    uint8_t* memory = nic_state_.keys.Remote(queue_pair_.asker(), write_key_, write_address_ + bytes_,
                                             begins ? write_length_ : length, kRemoteWrite);
    if (memory == nullptr) return Refuse(kRemoteAccessNak);
    const bool phantom = nic_state_.keys.IsPhantom(write_key_);
    if (!phantom && !CopyPayload(nic_state_.keys, packet, memory)) return Refuse(kRemoteAccessNak);
  }
  message_ = Message::kWrite;
  bytes_ += length;
  ++expected_;
  if (!ends) return true;
  message_ = Message::kNone;
  msn_ = (msn_ + 1) & kPsnMask;
  if (HasImmediate(packet.opcode)) {
    receives_.Take();
    CompleteReceive(packet, CompletionOpcode::kReceiveWriteWithImm, write_length_);
  }
  return true;
}

bool Responder::ExecuteRead(const Packet& packet) {
  if ((queue_pair_.remote_access() & kRemoteRead) == 0) return Refuse(kInvalidRequestNak);
  if (responses_.fresh() >= queue_pair_.reliability().reads_served) return Refuse(kInvalidRequestNak);
  if (packet.dma_length > kMaxMessage) return Refuse(kInvalidRequestNak);
  if (packet.dma_length > 0 && nic_state_.keys.Remote(queue_pair_.asker(), packet.rkey, packet.remote_address,
                                                      packet.dma_length, kRemoteRead) == nullptr) {
    return Refuse(kRemoteAccessNak);
  }
  Response response;
  response.first = response.position = response.base = expected_;
  response.end = expected_ + PacketsFor(packet.dma_length, queue_pair_.mtu());
  response.address = packet.remote_address;
  response.length = packet.dma_length;
  response.key = packet.rkey;
  response.msn = (msn_ + 1) & kPsnMask;
  if (!responses_.Append(response)) return false;  // full of replays; the peer asks again
  served_.Add(response);
  msn_ = response.msn;
  expected_ = response.end;
  queue_pair_.MarkReady();
  return true;
}

bool Responder::ExecuteAtomic(const Packet& packet) {
  if ((queue_pair_.remote_access() & kRemoteAtomic) == 0) return Refuse(kInvalidRequestNak);
  if (responses_.fresh() >= queue_pair_.reliability().reads_served) return Refuse(kInvalidRequestNak);
  if (packet.remote_address % sizeof(uint64_t) != 0) return Refuse(kInvalidRequestNak);
  uint8_t* memory =
      nic_state_.keys.Remote(queue_pair_.asker(), packet.rkey, packet.remote_address, sizeof(uint64_t), kRemoteAtomic);
  if (memory == nullptr || !nic_state_.keys.MayChange(memory, sizeof(uint64_t))) return Refuse(kRemoteAccessNak);
  Response response;
  response.atomic = true;
  response.first = response.position = expected_;
  response.end = expected_ + 1;
  response.address = packet.remote_address;
  response.key = packet.rkey;
  response.msn = (msn_ + 1) & kPsnMask;
  if (!responses_.Append(response)) return false;  // before it is done: an atomic must not be done twice
  responses_.back().original = AtomicallyUpdate(memory, packet);
  served_.Add(responses_.back());
  msn_ = response.msn;
  ++expected_;
  queue_pair_.MarkReady();
  return true;
}

void Responder::CompleteReceive(const Packet& packet, CompletionOpcode opcode, uint32_t byte_count) {
  Completion completion;
  completion.opcode = opcode;
  completion.byte_count = byte_count;
  completion.has_immediate = HasImmediate(packet.opcode);
  completion.immediate = completion.has_immediate ? packet.immediate : 0;
  completion.has_invalidated = HasIeth(packet.opcode);
  completion.invalidated_rkey = completion.has_invalidated ? packet.rkey : 0;
  receives_.Complete(completion, packet.solicited);
}

void Responder::OnDuplicate(const Packet& packet, uint64_t sequence) {
  ++queue_pair_.counters.requests_duplicate;
  if (packet.opcode != PacketOpcode::kReadRequest && packet.opcode != PacketOpcode::kCompareSwap &&
      packet.opcode != PacketOpcode::kFetchAdd) {
    ack_due_ = true;
    OweAnswer();
    return;
  }
  const Response* const served = served_.Find(packet, sequence, queue_pair_.mtu());
  if (served == nullptr) return;  // in silence: any answer, even a NAK, would help a guess
  Response response = *served;
  response.first = response.position = response.base = sequence;
  response.msn = msn_;
  if (!served->atomic) {
    response.end = sequence + PacketsFor(packet.dma_length, queue_pair_.mtu());
    response.address = packet.remote_address;
    response.length = packet.dma_length;
  }
  responses_.Replay(response);
  queue_pair_.MarkReady();
}

void Responder::OnGap(const Packet& packet, uint64_t sequence) {
  const bool kept = nic_state_.options.selective_repeat && !gap_told_ && held_.Put(expected_, sequence, packet);
  ++(kept ? queue_pair_.counters.requests_held : queue_pair_.counters.requests_out_of_order);
  if (gap_told_) return;
  gap_told_ = !nic_state_.options.selective_repeat;
  nak_due_ = kSequenceNak;
  OweAnswer();
}

bool Responder::NotReady() {
  gap_told_ = true;  // later packets show no gap
  nak_due_ = kNotReadyNak | NotReadyCode(queue_pair_.reliability().rnr_delay);
  OweAnswer();
  return false;
}

bool Responder::Refuse(uint8_t syndrome, CompletionStatus receive_status) {
  const Fault fault{syndrome, expected_, receive_status};
  queue_pair_.MarkReady();
  if (responses_.empty()) {
    End(fault);
  } else {
    fault_ = fault;
  }
  return false;
}

void Responder::End(const Fault& fault) {
  queue_pair_.Fail(CompletionStatus::kFlushed, fault.receive_status, fault.syndrome);
  ended_ = fault;
  ended_due_ = true;
  ended_due_at_ = fault.sequence;
  OweAnswer();
}

void Responder::OnRequestInError(const Packet& packet) {
  ++queue_pair_.counters.requests_refused;
  const uint64_t sequence = ended_ ? ExtendPsn(packet.psn, ended_->sequence) : 0;
  if (!ended_ || sequence > ended_->sequence) return;
  // The NAK acknowledges the requests before it, except those whose answers the peer missed and
  // cannot get any more.
  const bool wants_answer = packet.opcode == PacketOpcode::kReadRequest ||
                            packet.opcode == PacketOpcode::kCompareSwap || packet.opcode == PacketOpcode::kFetchAdd;
  const uint64_t at = wants_answer ? sequence : ended_->sequence;
  ended_due_at_ = ended_due_ ? std::min(ended_due_at_, at) : at;
  ended_due_ = true;
  OweAnswer();
}

void Responder::Reset() {
  receives_.Forget();
  Stop();
  ended_.reset();
  ended_due_ = false;
}

void Responder::Flush(CompletionStatus first) {
  receives_.Flush(first);
  Stop();
}

void Responder::Stop() {
  running_ = false;
  message_ = Message::kNone;
  ack_due_ = gap_told_ = false;
  nak_due_ = 0;
  responses_.Clear();
  fault_.reset();
  const uint32_t dropped = held_.Clear();
  queue_pair_.counters.requests_held -= dropped;
  queue_pair_.counters.requests_refused += dropped;
}

// ---- Answering.

// An answer without READ data before it goes before the data of all queue pairs. On the wire it has
// the class of data, since it must not overtake READ data, which would then seem lost.
void Responder::OweAnswer() {
  if (AnswersFirst()) {
    queue_pair_.MarkAnswer();
  } else {
    queue_pair_.MarkReady();
  }
}

void Responder::EmitAnswer() {
  Share share;
  if (!AnswersFirst() || Emit(&share)) queue_pair_.MarkReady();
}

void Responder::AcknowledgeLast() {
  const bool only_this = ack_due_ && nak_due_ == 0 && !fault_ && responses_.empty();
  if (!running_ || !only_this || nic_state_.outbox.full()) return;
  ack_due_ = false;
  EmitAcknowledge(kAck, expected_ - 1);
  nic_state_.outbox.LeavesAnyway();
}

bool Responder::Emit(Share* share) {
  if (ended_due_) {
    if (nic_state_.outbox.full()) return true;
    ended_due_ = false;
    EmitAcknowledge(ended_->syndrome, ended_due_at_);
    return false;
  }
  if (!running_) return false;
  while (!responses_.empty()) {
    if (!queue_pair_.MaySend()) return false;
    if (share->spent() || nic_state_.outbox.full()) return true;
    Response& response = responses_.front();
    if (!EmitResponse(response, share)) continue;
    if (response.position == response.end) responses_.PopFront();
  }
  if (fault_) {
    // Going to Error takes packets out of the outbox: the answers must leave first.
    if (nic_state_.outbox.CountOf(queue_pair_.number()) > 0) return true;
    const Fault fault = *fault_;
    End(fault);
    return true;
  }
  if (nak_due_ == 0 && !ack_due_) return false;
  if (nic_state_.outbox.full()) return true;
  if (nak_due_ != 0) {
    EmitAcknowledge(nak_due_, expected_);
  } else {
    EmitAcknowledge(kAck, expected_ - 1);
  }
  nak_due_ = 0;
  ack_due_ = false;
  return false;
}

// Adds one packet of `response`. Returns false if it cannot be answered any more.
bool Responder::EmitResponse(Response& response, Share* share) {
  if (response.position + 1 == expected_) ack_due_ = false;  // it acknowledges, too
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
  const bool phantom = nic_state_.keys.IsPhantom(response.key);
  const uint8_t* memory = nullptr;
  if (length > 0) {
    memory = nic_state_.keys.Remote(queue_pair_.asker(), response.key, response.address + offset, length, kRemoteRead);
    if (memory == nullptr || (!phantom && !nic_state_.keys.MayRead(memory, length))) {
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
    packet.payload[packet.slices++] = {phantom ? nullptr : memory, length};
    nic_state_.outbox.Uses(response.key);
    nic_state_.outbox.Uses(nic_state_.keys.RegionOf(response.key));
  }
  queue_pair_.OnSend(packet);
  queue_pair_.counters.bytes_sent += length;
  share->Spend(length);
  ++response.position;
  return true;
}

// Refuses a READ whose region or window went away.
void Responder::RefuseResponse(const Response& response) {
  const Fault fault{kRemoteAccessNak, response.position, CompletionStatus::kFlushed};
  if (response.replay) {
    // A late duplicate may ask for memory taken back since: no reason to end the connection. The
    // NAK reveals no key: this READ was served once, and its key opens nothing any more.
    responses_.PopFront();
    if (!nic_state_.outbox.full()) EmitAcknowledge(fault.syndrome, fault.sequence);
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
  const bool selective = syndrome == kSequenceNak && !held_.empty();
  Packet& packet =
      queue_pair_.AddPacket(selective ? PacketOpcode::kSelectiveNak : PacketOpcode::kAcknowledge, sequence);
  packet.syndrome = syndrome;
  packet.msn = msn_;
  if (!selective) return;
  const auto map = held_.Map(sequence);
  packet.swap_or_add = map[0];
  packet.compare = map[1];
}

}  // namespace tokamak::verbs::soft
