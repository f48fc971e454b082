#include "lib/verbs/soft/nic.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/soft/nic_limits.h"

namespace tokamak::verbs::soft {
namespace {

// Streams of one seed.
enum Stream : uint64_t { kOwnStream, kKeyStream, kManagerStream, kNumberStream };

constexpr uint16_t kFullMembership = 0x8000;  // of a P_Key; partial members are peers too

// Packets, of one queue pair and of all together.
constexpr uint32_t kLeastWindow = 16;

constexpr uint32_t kMaxBatch = 4096;  // packets
constexpr uint8_t kMaxDscp = 63;

// RoCEv2's UDP source ports are in the dynamic range (A17.9.2).
constexpr uint16_t kFirstFlowPort = 0xc000;
constexpr uint16_t kFlowPorts = 0x4000;

absl::Status NoMoreKeys() {
  return absl::ResourceExhaustedError(absl::StrCat("more than ", KeyTable::kMaxKeys, " regions and windows"));
}

}  // namespace

Nic::Nic(base::EventLoop& loop, base::Trace& trace, const DeviceOptions& options)
    : options_(options),
      numbers_(options.seed, kOwnStream),
      manager_numbers_(options.seed, kManagerStream),
      nic_state_(
          loop, trace, options_, SecretNumbers(options.seed, kKeyStream), [this] { Wake(); }, [this] { OnTimer(); }),
      table_(SecretNumbers(options.seed, kNumberStream)),
      mads_(static_cast<uint32_t>(numbers_.Below(kPsnMask + 1))),
      doorbell_(loop.MakeSignal([this] { OnDoorbell(); })) {
  nic_state_.on_first_data = [this](uint32_t number) REQUIRES_NIC_MUTEX { manager_->OnFirstData(number); };
  nic_state_.on_error = [this](uint32_t number) REQUIRES_NIC_MUTEX {
    if (!walking_) manager_->OnError(number);
  };
  nic_state_.on_receive_limit = [this](SharedReceives& receives) {
    watches_.Tell({DeviceEvent::kReceiveLimit, 0, receives.handle()});
  };
}

// Sends the last CM messages, about connections just dropped.
Nic::~Nic() {
  nic_state_.outbox.set_limit(SIZE_MAX);
  while (port_ != nullptr && !port_busy_ && has_data()) {
    nic_state_.counters.datagrams_sent += mads_.AddTo(nic_state_.outbox);
    if (nic_state_.outbox.empty() || !FlushOutbox()) break;
  }
  manager_.reset();  // before what it uses
}

void Nic::OnPackets(absl::Span<const Packet> packets) {
  BeginTurn();
  ++nic_state_.counters.batches_received;
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
  port_busy_ = notifications_busy_ = false;
  EndTurn();
}

void Nic::OnTimer() {
  BeginTurn();
  EndTurn();
}

void Nic::BeginTurn() {
  mutex_.LockForNic();
  in_turn_ = true;
  nic_state_.alarms.Begin();
}

void Nic::EndTurn() {
  doorbells_.Answer();
  FinishTurns();
  nic_state_.alarms.Fire();
  Publish();
  Transmit();
  Publish();
  // Work may remain that waits for no packet: requests that make none, or that an overrun gave
  // room. Each such turn carries out or sends, so it does not spin.
  if (has_work()) Wake();
  nic_state_.alarms.End();
  in_turn_ = false;
  mutex_.Unlock();
}

void Nic::Dispatch(const Packet& packet) {
  DeviceCounters& counters = nic_state_.counters;
  nic_state_.Trace(base::TraceKind::kPacketReceived, packet.psn, nic_state_.tracing() ? packet.payload_length() : 0);
  if (packet.corrupt) return nic_state_.Drop(packet, &counters.dropped_corrupt);
  if (!IsKnown(packet.opcode)) return nic_state_.Drop(packet, &counters.dropped_unknown_opcode);
  if ((packet.pkey | kFullMembership) != kDefaultPkey) return nic_state_.Drop(packet, &counters.dropped_wrong_pkey);
  if (packet.destination == kManagementQueuePair) return DispatchToManager(packet);
  if (packet.destination == kMulticastQueuePair || packet.came_to_group()) return DispatchToGroup(packet);
  QueuePairCore* queue_pair = table_.Find(packet.destination);
  if (queue_pair == nullptr) return nic_state_.Drop(packet, &counters.dropped_unknown_queue_pair);
  queue_pair->Receive(packet);
}

void Nic::DispatchToManager(const Packet& packet) {
  DeviceCounters& counters = nic_state_.counters;
  if (packet.opcode != PacketOpcode::kDatagramSendOnly || packet.came_to_group()) {
    return nic_state_.Drop(packet, &counters.dropped_unknown_opcode);
  }
  if (packet.qkey != kManagementQkey) return nic_state_.Drop(packet, &counters.dropped_wrong_qkey);
  switch (manager_->OnMad(packet)) {
    case DatagramResult::kNoMessage:
      return nic_state_.Drop(packet, &counters.dropped_bad_datagram);
    case DatagramResult::kRefused:
      ++counters.connections_refused;
      break;
    case DatagramResult::kTaken:
      break;
  }
  ++counters.datagrams_received;
}

void Nic::DispatchToGroup(const Packet& packet) {
  const MulticastGroups::Members* const members =
      packet.destination == kMulticastQueuePair ? groups_.Find(packet.group) : nullptr;
  if (members == nullptr) return nic_state_.Drop(packet, &nic_state_.counters.dropped_unknown_group);
  for (DatagramCore* member : *members) member->Receive(packet);
}

void Nic::FinishTurns() {
  while (QueuePairCore* queue_pair = nic_state_.touched.TakeFirst()) queue_pair->FinishTurn();
}

void Nic::Transmit() {
  Notify();
  if (port_busy_) return;
  if (has_data()) nic_state_.AnswerPatient();
  for (int batches = 0; has_data(); ++batches) {
    if (batches == kBatchesPerTurn || mutex_.owner_waits()) {
      Wake();
      return;
    }
    // No packets are made that the port would not take: answers due meanwhile could not pass them,
    // and after a loss they would be made again.
    const size_t room = port_->room();
    if (room == 0) {
      port_busy_ = true;
      return;
    }
    nic_state_.outbox.set_limit(room);
    Fill();
    if (nic_state_.outbox.empty()) return;
    const bool all_taken = FlushOutbox();
    SettleDepartures();
    if (!all_taken) return;
  }
}

// Sends notifications alone: they are rare, and no data may go before them.
void Nic::Notify() {
  while (!notifications_busy_) {
    QueuePairCore* queue_pair = nic_state_.notifiers.TakeFirst();
    if (queue_pair == nullptr) return;
    if (queue_pair->Notify(*port_)) continue;
    notifications_busy_ = true;
    ++nic_state_.counters.port_busy;
  }
}

// Gives queue pairs turns until the batch is full or none can send.
void Nic::Fill() {
  AddAnswers();
  nic_state_.counters.datagrams_sent += mads_.AddTo(nic_state_.outbox);
  size_t idle = 0;  // queue pairs in a row that could not send all
  while (!nic_state_.outbox.full() && idle <= nic_state_.ready.size()) {
    QueuePairCore* queue_pair = nic_state_.TakeNext();
    if (queue_pair == nullptr) return;
    const size_t before = nic_state_.outbox.size();
    if (!queue_pair->Emit()) {
      idle = 0;
      continue;
    }
    queue_pair->MarkReady();
    idle = nic_state_.outbox.size() == before ? idle + 1 : 0;
  }
}

void Nic::AddAnswers() {
  while (!nic_state_.outbox.full()) {
    QueuePairCore* queue_pair = nic_state_.answers.TakeFirst();
    if (queue_pair == nullptr) return;
    queue_pair->EmitAnswer();
  }
}

bool Nic::FlushOutbox() {
  const absl::Span<const Packet> packets = nic_state_.outbox.waiting();
  const size_t taken = nic_state_.outbox.Flush(*port_);
  ++nic_state_.counters.batches_sent;
  if (nic_state_.tracing()) {
    for (const Packet& packet : packets.first(taken)) {
      nic_state_.Trace(base::TraceKind::kPacketSent, packet.psn, packet.payload_length());
    }
  }
  if (nic_state_.outbox.empty()) {
    mads_.ForgetAdded();
    return true;
  }
  ++nic_state_.counters.port_busy;
  port_busy_ = true;
  return false;
}

void Nic::RunOnLoop(const std::function<void()>& call) const {
  if (options_.run_on_nic_loop == nullptr) return call();
  options_.run_on_nic_loop(call);
}

void Nic::RingDoorbell(QueuePairCore& queue_pair) {
  if (doorbells_.Ring(queue_pair)) Wake();
}

void Nic::Wake() {
  if (!woken_.exchange(true, std::memory_order_acq_rel)) doorbell_->Raise();
}

void Nic::Publish() {
  while (!nic_state_.overrun.empty()) {
    CompletionRing* ring = nic_state_.overrun.back();
    nic_state_.overrun.pop_back();
    EndOverrun(*ring);
  }
  for (CompletionRing* ring : nic_state_.unpublished) {
    ring->unpublished = false;
    ring->Publish();
  }
  nic_state_.unpublished.clear();
}

void Nic::EndOverrun(CompletionRing& ring) {
  ++nic_state_.counters.completion_queue_overruns;
  LOG(ERROR) << options_.name << ": a completion queue of " << ring.depth() << " is overrun; its queue pairs end";
  watches_.Tell({DeviceEvent::kCompletionQueueOverrun});
  table_.ForEach([&](QueuePairCore& queue_pair) REQUIRES_NIC_MUTEX {
    if (&queue_pair.send_ring() != &ring && &queue_pair.receive_ring() != &ring) return;
    queue_pair.Fail(CompletionStatus::kFlushed, CompletionStatus::kFlushed, 0);
  });
}

// ---- Calls of owners' threads and of the connection manager.

absl::StatusOr<std::shared_ptr<Nic>> Nic::Open(base::EventLoop& loop, Fabric& fabric, base::Trace& trace,
                                               const DeviceOptions& options) {
  if (options.batch_packets == 0 || options.batch_packets > kMaxBatch) {
    return absl::InvalidArgumentError(absl::StrCat("a batch has 1 to ", kMaxBatch, " packets"));
  }
  if (options.dscp > kMaxDscp) return absl::InvalidArgumentError(absl::StrCat("a DSCP is at most ", kMaxDscp));
  const std::shared_ptr<Nic> nic(new Nic(loop, trace, options), [run = options.run_on_nic_loop](Nic* last) {
    if (run == nullptr) {
      delete last;
    } else {
      run([last] { delete last; });
    }
  });
  if (absl::Status s = nic->Plug(loop, fabric, options); !s.ok()) return s;
  return nic;
}

absl::Status Nic::Plug(base::EventLoop& loop, Fabric& fabric, const DeviceOptions& options) {
  PortCallbacks callbacks{[this](absl::Span<const Packet> packets) { OnPackets(packets); }, [this] { OnPortReady(); }};
  absl::StatusOr<std::unique_ptr<Port>> port = fabric.Open(loop, options.address, std::move(callbacks));
  if (!port.ok()) return port.status();
  NicLock lock(mutex_);
  port_ = *std::move(port);
  table_.set_share(port_->numbers());
  address_ = FromFabricAddress(port_->address());
  if (address_.udp_port == kRoceUdpPort) address_.udp_port = 0;
  limits_ = MakeLimits(RoundMtu(std::min(port_->max_mtu(), options.max_mtu)));
  // Peers are assumed to have as much room as we have.
  nic_state_.reads.set_window(port_->receive_window());
  if (options.congestion != CongestionControl::kNone) {
    const uint32_t together = options.nic_packets != 0 ? options.nic_packets : PortPackets();
    nic_state_.sends.set_window(std::max(together, options.window_packets));
  }
  return absl::OkStatus();
}

void Nic::SettleDepartures() {
  for (size_t listed = nic_state_.departing.size(); listed > 0; --listed)
    nic_state_.departing.TakeFirst()->OnDeparture();
}

void Nic::LeaveControl() {
  doorbells_.Answer();
  SettleDepartures();
  Publish();
  if (!in_turn_ && has_work()) Wake();
}

namespace {

absl::Status CheckRegion(absl::Span<uint8_t> memory, Access access) {
  if (memory.empty() || memory.data() == nullptr) return absl::InvalidArgumentError("no memory to register");
  if ((access & (kRemoteWrite | kRemoteAtomic)) != 0 && (access & kLocalWrite) == 0) {
    return absl::InvalidArgumentError("remote write and remote atomic access need local write");
  }
  if ((access & kPhantom) != 0 && (access & kRemoteAtomic) != 0) {
    return absl::InvalidArgumentError("atomics need bytes: no kRemoteAtomic with kPhantom");
  }
  if ((access & kRelaxedOrdering) != 0 && (access & kRemoteAtomic) != 0) {
    return absl::InvalidArgumentError("kRelaxedOrdering does not go with kRemoteAtomic");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint32_t> Nic::Register(DomainId domain, const RegionMemory& memory, Access access) {
  if (absl::Status s = CheckRegion(memory.bytes, access); !s.ok()) return s;
  const uint32_t key = nic_state_.keys.Add(domain, memory, access);
  if (key == 0) return NoMoreKeys();
  return key;
}

absl::Status Nic::Reregister(uint32_t key, DomainId domain, const RegionMemory& memory, Access access) {
  if (absl::Status s = CheckRegion(memory.bytes, access); !s.ok()) return s;
  nic_state_.keys.Change(key, domain, memory, access);
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropKey(key);
  return absl::OkStatus();
}

void Nic::Deregister(uint32_t key) {
  nic_state_.keys.Remove(key);
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropKey(key);
}

absl::StatusOr<WindowId> Nic::CreateWindow(DomainId domain) {
  const WindowId window = nic_state_.keys.AddWindow(domain);
  if (window.key == 0) return NoMoreKeys();
  return window;
}

void Nic::DestroyWindow(const WindowId& window) {
  const uint32_t bound = nic_state_.keys.RemoveWindow(window);
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropKey(bound);
}

absl::Status Nic::Reserve(QueuePairParts* parts) {
  parts->number = table_.Reserve();
  if (parts->number == 0) {
    return absl::ResourceExhaustedError(absl::StrCat("more than ", limits_.max_queue_pairs, " queue pairs"));
  }
  parts->source_port = static_cast<uint16_t>(kFirstFlowPort + numbers_.Below(kFlowPorts));
  return absl::OkStatus();
}

absl::StatusOr<ConnectedCore*> Nic::CreateQueuePair(QueuePairParts parts, const QueuePairOptions& options) {
  if (absl::Status s = Reserve(&parts); !s.ok()) return s;
  const uint32_t number = parts.number;
  auto* queue_pair = new ConnectedCore(nic_state_, std::move(parts), options, MakeOwnCongestion());
  table_.Insert(number, queue_pair);
  return queue_pair;
}

absl::StatusOr<DatagramCore*> Nic::CreateDatagramQueuePair(QueuePairParts parts,
                                                           const DatagramQueuePairOptions& options) {
  if (absl::Status s = Reserve(&parts); !s.ok()) return s;
  const uint32_t number = parts.number;
  auto* queue_pair = new DatagramCore(nic_state_, std::move(parts), options, port_->address(), limits_.active_mtu);
  table_.Insert(number, queue_pair);
  return queue_pair;
}

absl::Status Nic::Attach(const Address& group, DatagramCore& queue_pair) {
  if (absl::Status s = groups_.MayAdd(group.ip); !s.ok()) return s;
  if (groups_.Find(group.ip) == nullptr) {
    if (absl::Status s = port_->Join(group); !s.ok()) return s;
  }
  groups_.Add(group.ip, queue_pair);
  return absl::OkStatus();
}

void Nic::Detach(const Address& group, DatagramCore& queue_pair) {
  CHECK(groups_.Remove(group.ip, queue_pair));
  if (groups_.Find(group.ip) == nullptr) port_->Leave(group);
}

uint32_t Nic::PortPackets() const {
  const uint64_t fits = port_->receive_window() / limits_.active_mtu;
  return static_cast<uint32_t>(std::min<uint64_t>(std::max<uint64_t>(fits, kLeastWindow), kMostWindow));
}

std::unique_ptr<Congestion> Nic::MakeOwnCongestion() const {
  CongestionPath path;
  path.packets = options_.window_packets != 0 ? options_.window_packets : PortPackets();
  path.line_rate = port_->line_rate();
  path.pause = options_.pause;
  path.dcqcn = options_.dcqcn;
  return MakeCongestion(options_.congestion, path);
}

void Nic::Destroy(QueuePairCore* queue_pair) {
  // It may be among those that rang.
  doorbells_.Answer();
  const uint32_t number = queue_pair->number();
  if (queue_pair->watched) manager_->OnDropped(number);
  table_.Remove(number);
  queue_pair->ForgetCompletions();
  // Shared or surviving rings are published before the mutex is released.
  Publish();
  gone_.Add(queue_pair->counters);
  delete queue_pair;
}

absl::Status Nic::ModifyByOwner(ConnectedCore& queue_pair, QueuePairState state,
                                const QueuePairAttributes& attributes) {
  // A queue pair without its requests must not be among those that rang.
  doorbells_.Answer();
  return queue_pair.Modify(state, attributes, limits_);
}

absl::Status Nic::ModifyByOwner(DatagramCore& queue_pair, QueuePairState state, const DatagramAttributes& attributes) {
  doorbells_.Answer();  // as above
  return queue_pair.Modify(state, attributes);
}

absl::Status Nic::Modify(uint32_t number, QueuePairState state, const QueuePairAttributes& attributes) {
  // A reset is for the owner's thread alone.
  if (state == QueuePairState::kReset) return absl::InvalidArgumentError("only an owner resets its queue pair");
  walking_ = true;
  const absl::Status status = Connected(number)->Modify(state, attributes, limits_);
  walking_ = false;
  if (!in_turn_) Wake();  // to publish the flushed completions
  return status;
}

void Nic::ArmShared(SharedReceives& receives, uint32_t limit) {
  receives.Arm(limit);
  if (receives.RanLow()) nic_state_.on_receive_limit(receives);
}

void Nic::CloseShared(SharedReceives& receives) {
  doorbells_.Answer();  // as in ModifyByOwner
  receives.Close();
  table_.ForEach([&](QueuePairCore& queue_pair) REQUIRES_NIC_MUTEX {
    if (queue_pair.shared_receives() != &receives) return;
    queue_pair.Fail(CompletionStatus::kFlushed, CompletionStatus::kFlushed, 0);
  });
  watches_.Forget(receives.handle());
}

DeviceCounters Nic::counters() const {
  DeviceCounters counters = nic_state_.counters;
  counters.queue_pairs = gone_;
  table_.ForEach([&](QueuePairCore& queue_pair) REQUIRES_NIC_MUTEX { counters.queue_pairs.Add(queue_pair.counters); });
  return counters;
}

absl::StatusOr<QueuePairCounters> Nic::queue_pair_counters(uint32_t number) const {
  const QueuePairCore* queue_pair = table_.Find(number);
  if (queue_pair == nullptr) return absl::NotFoundError(absl::StrCat("no queue pair ", number));
  QueuePairCounters counters = queue_pair->counters;
  counters.rate = queue_pair->rate();
  return counters;
}

void Nic::SendMad(const Address& peer, absl::Span<const uint8_t> mad) {
  if (!mads_.Add(peer, mad)) {
    ++nic_state_.counters.dropped_datagrams;
    return;
  }
  if (!in_turn_) Wake();
}

}  // namespace tokamak::verbs::soft
