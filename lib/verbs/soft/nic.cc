// The turns of the NIC; its control calls are in nic_control.cc.
#include "lib/verbs/soft/nic.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"

namespace tokamak::verbs::soft {
namespace {

// Streams of one seed.
enum Stream : uint64_t { kOwnStream, kKeyStream, kManagerStream };

constexpr uint16_t kFullMembership = 0x8000;  // of a P_Key; partial members are peers too

}  // namespace

Nic::Nic(base::EventLoop& loop, base::Trace& trace, const DeviceOptions& options)
    : options_(options),
      random_(base::Random(options.seed).Fork(kOwnStream)),
      manager_random_(base::Random(options.seed).Fork(kManagerStream)),
      engine_(
          loop, trace, options.trace_node, base::Random(options.seed).Fork(kKeyStream), [this] { Wake(); },
          [this] { OnTimer(); }),
      table_(static_cast<uint8_t>(random_.Below(256))),
      doorbell_(loop.MakeSignal([this] { OnDoorbell(); })) {
  mad_psn_ = static_cast<uint32_t>(random_.Below(kPsnMask + 1));
  engine_.on_first_data = [this](uint32_t number) { manager_->OnFirstData(number); };
  engine_.on_error = [this](uint32_t number) {
    if (!walking_) manager_->OnError(number);
  };
  engine_.on_receive_limit = [this](SharedReceives& receives) {
    watches_.Tell({DeviceEvent::kReceiveLimit, 0, receives.handle()});
  };
}

// The last word is the connection manager's: peers of connections that were dropped just before are told so.
Nic::~Nic() {
  while (port_ != nullptr && !port_busy_ && has_work()) {
    AddMads();
    if (engine_.outbox.empty() || !FlushOutbox()) break;
  }
  manager_.reset();  // it uses the rest
}

void Nic::OnPackets(absl::Span<const Packet> packets) {
  BeginTurn();
  ++engine_.counters.batches_received;
  for (const Packet& packet : packets) Dispatch(packet);
  EndTurn();
}

void Nic::OnDoorbell() {
  woken_.exchange(false, std::memory_order_acq_rel);
  BeginTurn();
  EndTurn();
}

void Nic::OnPortReady() {
  BeginTurn();
  port_busy_ = false;
  EndTurn();
}

void Nic::OnTimer() {
  BeginTurn();
  EndTurn();
}

void Nic::BeginTurn() {
  mutex_.LockForNic();
  in_turn_ = true;
  engine_.alarms.Begin();
}

void Nic::EndTurn() {
  AnswerRings();
  Settle();
  engine_.alarms.Fire();
  Publish();
  Transmit();
  Publish();
  // What is left without a packet that waits for the port: requests that make none, or those whom an overrun gave room.
  // Each such turn carries requests out or sends, so it does not go round for nothing.
  if (!port_busy_ && has_work()) Wake();
  engine_.alarms.End();
  in_turn_ = false;
  mutex_.unlock();
}

void Nic::Dispatch(const Packet& packet) {
  DeviceCounters& counters = engine_.counters;
  engine_.Trace(base::TraceKind::kPacketReceived, packet.psn, engine_.tracing() ? packet.payload_length() : 0);
  if (packet.corrupt) return Drop(packet, &counters.dropped_corrupt);
  if (!IsKnown(packet.opcode)) return Drop(packet, &counters.dropped_unknown_opcode);
  if ((packet.pkey | kFullMembership) != kDefaultPkey) return Drop(packet, &counters.dropped_wrong_pkey);
  const bool datagram = packet.opcode == PacketOpcode::kDatagramSendOnly;
  if (packet.destination == kManagementQueuePair) {
    if (!datagram) return Drop(packet, &counters.dropped_unknown_opcode);
    if (packet.qkey != kManagementQkey) return Drop(packet, &counters.dropped_wrong_qkey);
    switch (manager_->OnMad(packet)) {
      case DatagramResult::kNoMessage:
        return Drop(packet, &counters.dropped_bad_datagram);
      case DatagramResult::kRefused:
        ++counters.connections_refused;
        break;
      case DatagramResult::kTaken:
        break;
    }
    ++counters.datagrams_received;
    return;
  }
  QueuePairCore* queue_pair = table_.Find(packet.destination);
  if (queue_pair == nullptr) return Drop(packet, &counters.dropped_unknown_queue_pair);
  if (datagram) return Drop(packet, &counters.dropped_unknown_opcode);
  if (packet.peer.ip != queue_pair->peer().ip) return Drop(packet, &counters.dropped_wrong_peer);
  queue_pair->Receive(packet);
}

void Nic::Drop(const Packet& packet, uint64_t* counter) {
  ++*counter;
  engine_.Trace(base::TraceKind::kPacketDropped, packet.psn, 0);
}

void Nic::Settle() {
  while (QueuePairCore* queue_pair = engine_.touched.TakeFirst()) queue_pair->Settle();
}

void Nic::Transmit() {
  if (port_busy_) return;
  for (int batches = 0; has_work(); ++batches) {
    if (batches == kBatchesPerTurn || mutex_.owner_waits()) {
      Wake();
      return;
    }
    Fill();
    if (engine_.outbox.empty()) return;
    if (!FlushOutbox()) return;
  }
}

// Each queue pair in turn, until the batch is full or nobody has anything that can go now.
void Nic::Fill() {
  AddMads();
  size_t idle = 0;  // queue pairs in a row that had more to say but could not
  while (!engine_.outbox.full() && idle <= engine_.ready.size()) {
    QueuePairCore* queue_pair = engine_.TakeNext();
    if (queue_pair == nullptr) return;
    const size_t before = engine_.outbox.size();
    if (!queue_pair->Emit()) {
      idle = 0;
      continue;
    }
    queue_pair->MarkReady();
    idle = engine_.outbox.size() == before ? idle + 1 : 0;
  }
}

void Nic::AddMads() {
  while (mads_added_ < mads_.size() && !engine_.outbox.full()) {
    const Mad& mad = mads_[mads_added_++];
    Packet& packet = engine_.outbox.Add(kManagementQueuePair);
    packet.opcode = PacketOpcode::kDatagramSendOnly;
    packet.destination = kManagementQueuePair;
    packet.psn = mad_psn_;
    packet.qkey = kManagementQkey;
    packet.source_queue_pair = kManagementQueuePair;
    packet.peer = mad.peer;
    packet.payload[packet.slices++] = {mad.bytes.data(), kMadSize};
    mad_psn_ = (mad_psn_ + 1) & kPsnMask;
    ++engine_.counters.datagrams_sent;
  }
}

// Returns whether the port took everything.
bool Nic::FlushOutbox() {
  const absl::Span<const Packet> packets = engine_.outbox.waiting();
  const size_t taken = engine_.outbox.Flush(*port_);
  ++engine_.counters.batches_sent;
  if (engine_.tracing()) {
    for (const Packet& packet : packets.first(taken)) {
      engine_.Trace(base::TraceKind::kPacketSent, packet.psn, packet.payload_length());
    }
  }
  if (engine_.outbox.empty()) {
    mads_.erase(mads_.begin(), mads_.begin() + static_cast<ptrdiff_t>(mads_added_));
    mads_added_ = 0;
    return true;
  }
  ++engine_.counters.port_busy;
  port_busy_ = true;
  return false;
}

void Nic::Ring(QueuePairCore& queue_pair) {
  if (queue_pair.rang.exchange(true, std::memory_order_acq_rel)) return;
  QueuePairCore* head = rang_.load(std::memory_order_relaxed);
  do {
    queue_pair.next_rang = head;
  } while (!rang_.compare_exchange_weak(head, &queue_pair, std::memory_order_acq_rel, std::memory_order_relaxed));
  Wake();
}

void Nic::Wake() {
  if (!woken_.exchange(true, std::memory_order_acq_rel)) doorbell_->Raise();
}

void Nic::AnswerRings() {
  QueuePairCore* last = rang_.exchange(nullptr, std::memory_order_acq_rel);
  // The stack has the latest on top; they are answered in the order in which they rang.
  QueuePairCore* first = nullptr;
  while (last != nullptr) {
    QueuePairCore* next = last->next_rang;
    last->next_rang = first;
    first = last;
    last = next;
  }
  while (first != nullptr) {
    QueuePairCore* queue_pair = first;
    first = first->next_rang;
    // From here on it may ring again; what it posted before is visible.
    queue_pair->rang.exchange(false, std::memory_order_acq_rel);
    queue_pair->Answer();
  }
}

void Nic::Publish() {
  while (!engine_.overrun.empty()) {
    CompletionRing* ring = engine_.overrun.back();
    engine_.overrun.pop_back();
    EndOverrun(*ring);
  }
  for (CompletionRing* ring : engine_.unpublished) {
    ring->unpublished = false;
    ring->Publish();
  }
  engine_.unpublished.clear();
}

void Nic::EndOverrun(CompletionRing& ring) {
  ++engine_.counters.completion_queue_overruns;
  LOG(ERROR) << options_.name << ": a completion queue of " << ring.depth() << " is overrun; its queue pairs end";
  watches_.Tell({DeviceEvent::kCompletionQueueOverrun});
  table_.ForEach([&](QueuePairCore& queue_pair) {
    if (&queue_pair.send_ring() != &ring && &queue_pair.receive_ring() != &ring) return;
    queue_pair.Fail(CompletionStatus::kFlushed, CompletionStatus::kFlushed, 0);
  });
}

}  // namespace tokamak::verbs::soft
