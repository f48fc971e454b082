#include "tests/fuzz/nic_world.h"

#include <algorithm>
#include <array>

#include "lib/base/check.h"
#include "lib/verbs/soft/packets/wire.h"
#include "lib/verbs/soft/rc/psn.h"
#include "lib/verbs/soft/rc/syndrome.h"
#include "tests/verbs/soft/accounted.h"

namespace tokamak::fuzz {

using namespace verbs;        // NOLINT: this is a NIC's whole surroundings
using namespace verbs::soft;  // NOLINT

namespace {

constexpr size_t kCanary = 64;
constexpr uint8_t kCanaryByte = 0xca;
constexpr uint8_t kFrozenByte = 0xf0;
constexpr size_t kMostAsked = 64;  // requests that are remembered for an answer
constexpr Access kAll = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

bool All(absl::Span<const uint8_t> bytes, uint8_t value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](uint8_t byte) { return byte == value; });
}

bool Holds(absl::Span<const uint8_t> memory, const PayloadSlice& slice) {
  return slice.data >= memory.data() && slice.length <= memory.size() &&
         slice.data - memory.data() <= static_cast<ptrdiff_t>(memory.size() - slice.length);
}

bool Touches(const std::vector<uint8_t>& bytes, const PayloadSlice& slice) {
  return slice.data < bytes.data() + bytes.size() && slice.data + slice.length > bytes.data();
}

bool IsAnswer(PacketOpcode opcode) {
  return IsReadResponse(opcode) || opcode == PacketOpcode::kAcknowledge || opcode == PacketOpcode::kAtomicAcknowledge;
}

}  // namespace

class NicWorld::WirePort final : public Port {
 public:
  WirePort(NicWorld& world, const Address& address) : world_(world), address_(address) {}
  size_t Send(absl::Span<const Packet> packets) override {
    const size_t taken = std::min(packets.size(), world_.room_);
    world_.room_ -= taken;
    for (const Packet& packet : packets.first(taken)) world_.OnSent(packet);
    return taken;
  }
  const Address& address() const override { return address_; }
  uint32_t max_mtu() const override { return 1024; }
  uint64_t receive_window() const override { return 4096; }

 private:
  NicWorld& world_;
  const Address address_;
};

absl::StatusOr<std::unique_ptr<Port>> NicWorld::Open(base::EventLoop&, const Address& address,
                                                     PortCallbacks callbacks) {
  callbacks_ = std::move(callbacks);
  return std::make_unique<WirePort>(*this, address);
}

NicWorld::NicWorld() {
  DeviceOptions options;
  options.address = *Address::Parse("10.0.0.1");
  options.congestion = CongestionControl::kFixed;
  options.window_packets = 16;
  device_ = *OpenSoftDevice(nic_loop_, *this, trace_, options);
  domain_ = *device_->CreateProtectionDomain();
  other_domain_ = *device_->CreateProtectionDomain();
  completions_ = *device_->CreateCompletionQueue(loop_, 2 * kDepth * kLines, [] {});
  shared_ = *domain_->CreateSharedReceiveQueue(kDepth, 1);
  Make(kOpen, 3000, kAll, 3000, *domain_);
  Make(kReadable, 1500, kRemoteRead, 0, *domain_);
  Make(kClosed, 1000, kLocalWrite, 0, *domain_);
  Make(kForeign, 1000, kAll, 0, *other_domain_);
  Make(kRevoked, 1000, kAll, 0, *domain_);
  Make(kReceives, 2000, kLocalWrite, 2000, *domain_);
  Make(kSource, 2000, kLocalRead, 0, *domain_);
  Make(kWindowed, 1600, kLocalWrite | kWindowBind, 800, *domain_);
  Revoke(blocks_[kRevoked]);
  for (size_t i = 0; i < kWindows; ++i) RenewWindow(i);
  for (size_t i = 0; i < kLines; ++i) {
    lines_[i].peer = *Address::Parse(i == 0 ? "10.0.0.2" : "10.0.0.3");
    lines_[i].peer_number = 0x123456 + static_cast<uint32_t>(i);
    lines_[i].access = i == 0 ? kAll : kRemoteRead;
    Renew(lines_[i]);
    Walk(lines_[i], i == 0);
  }
}

NicWorld::~NicWorld() {
  Deliver();
  SetRoom(SIZE_MAX);
  Run(base::Seconds(1));
  for (Line& line : lines_) CHECK(line.queue_pair->Modify(QueuePairState::kError, {}).ok());
  Run(base::Seconds(1));
  Poll();
  for (const auto& [id, posted] : posted_) CHECK(!posted.must_complete) << "request " << id << " never completed";
  CheckMemory();
  CheckCounters();
}

void NicWorld::Make(BlockName name, size_t size, Access access, size_t frozen_from, ProtectionDomain& domain) {
  Block& block = blocks_[name];
  block.bytes.assign(size + 2 * kCanary, kCanaryByte);
  block.memory = absl::MakeSpan(block.bytes).subspan(kCanary, size);
  std::fill(block.memory.begin(), block.memory.end(), kFrozenByte);
  block.access = access;
  block.frozen = block.memory.subspan(frozen_from);
  block.region = *domain.RegisterMemory(block.memory, access);
}

void NicWorld::Add(const Packet& packet, absl::Span<const uint8_t> payload) {
  Packet& added = arriving_.emplace_back(packet);
  const std::vector<uint8_t>& copy = payloads_.emplace_back(payload.begin(), payload.end());
  added.slices = copy.empty() ? 0 : 1;
  added.payload[0] = {copy.data(), static_cast<uint32_t>(copy.size())};
}

void NicWorld::Deliver() {
  if (arriving_.empty()) return;
  arrived_ += arriving_.size();
  callbacks_.on_packets(arriving_);
  arriving_.clear();
  payloads_.clear();  // whoever looks at them later is caught
}

void NicWorld::Run(base::Duration duration) { scheduler_.RunFor(duration); }

void NicWorld::SetRoom(size_t packets) {
  room_ = packets;
  if (room_ > 0) callbacks_.on_ready();
}

void NicWorld::PostReceive(Line& line, const Sge& sge) {
  ReceiveRequest request;
  request.id = next_id_++;
  request.sges = absl::MakeConstSpan(&sge, 1);
  const bool shared = &line == &lines_[1];
  const PostResult result = shared ? shared_->PostReceive(absl::MakeConstSpan(&request, 1))
                                   : line.queue_pair->PostReceive(absl::MakeConstSpan(&request, 1));
  // A shared receive that no message took stays.
  if (result.ok()) posted_[request.id] = {line.queue_pair->number(), !shared, shared};
}

void NicWorld::PostSend(Line& line, SendRequest request) {
  request.id = next_id_++;
  const PostResult result = line.queue_pair->PostSend(absl::MakeConstSpan(&request, 1));
  if (result.ok()) posted_[request.id] = {line.queue_pair->number(), (request.flags & kSignaled) != 0};
}

void NicWorld::Bind(Line& line, size_t window, uint32_t offset, uint32_t length, Access access, SendFlags flags) {
  Block& block = blocks_[kWindowed];
  if (block.region == nullptr) return;
  SendRequest request;
  request.opcode = Opcode::kBindWindow;
  request.flags = flags;
  request.bind.window = windows_[window].get();
  request.bind.region = block.region.get();
  request.bind.address = block.memory.data() + offset;
  request.bind.length = length;
  const bool frozen = uint64_t{offset} + length > block.memory.size() - block.frozen.size();
  request.bind.access = frozen ? static_cast<Access>(access & kRemoteRead) : access;
  const bool inside = uint64_t{offset} + length <= block.memory.size();
  if (inside && (access & kRemoteRead) != 0) opened_.push_back({window, block.memory.subspan(offset, length)});
  PostSend(line, request);
}

// Another window instead; what the old one opened is closed.
void NicWorld::RenewWindow(size_t window) {
  windows_[window] = *domain_->CreateMemoryWindow();
  opened_.erase(std::remove_if(opened_.begin(), opened_.end(), [=](const Opened& o) { return o.window == window; }),
                opened_.end());
}

void NicWorld::Register(Block& block) {
  if (block.region == nullptr) block.region = *domain_->RegisterMemory(block.memory, block.access);
}

void NicWorld::Revoke(Block& block) {
  if (block.region == nullptr) return;
  block.revoked_key = block.region->rkey();
  block.region.reset();
  if (&block == &blocks_[kWindowed]) opened_.clear();
}

void NicWorld::Walk(Line& line, bool to_send) {
  if (line.queue_pair->state() != QueuePairState::kInit) return;
  QueuePairAttributes attributes;
  attributes.peer = line.peer;
  attributes.peer_number = line.peer_number;
  attributes.receive_psn = 0xfffffa;  // soon it wraps
  attributes.send_psn = 0xfffffd;
  attributes.path_mtu = kMtu;
  attributes.reliability.ack_timeout = base::Milliseconds(1);
  attributes.reliability.retry_count = attributes.reliability.rnr_retry_count = 2;
  attributes.reliability.reads_outstanding = attributes.reliability.reads_served = 2;
  CHECK(line.queue_pair->Modify(QueuePairState::kReadyToReceive, attributes).ok());
  if (to_send) CHECK(line.queue_pair->Modify(QueuePairState::kReadyToSend, attributes).ok());
  line.peer_psn = attributes.receive_psn;
  line.own_psn = attributes.send_psn;
  line.asked.clear();
}

// Another queue pair instead; what was posted to the old one does not complete any more.
void NicWorld::Renew(Line& line) {
  if (line.queue_pair != nullptr) {
    const uint32_t old = line.queue_pair->number();
    line.queue_pair.reset();
    for (auto& [id, posted] : posted_) {
      if (posted.queue_pair == old && !posted.shared) posted = {};
    }
  }
  QueuePairOptions options;
  options.send_queue = options.receive_queue = completions_.get();
  options.max_send_requests = options.max_receive_requests = kDepth;
  options.max_sges = 2;
  options.max_inline = 64;
  options.remote_access = line.access;
  if (&line == &lines_[1]) options.shared_receives = shared_.get();
  line.queue_pair = *domain_->CreateQueuePair(options);
}

void NicWorld::Poll() {
  std::array<Completion, 2 * kDepth * kLines> polled;
  const size_t count = completions_->Poll(absl::MakeSpan(polled));
  for (const Completion& completion : absl::MakeConstSpan(polled).first(count)) {
    const auto found = posted_.find(completion.id);
    CHECK(found != posted_.end()) << "completion of what was not posted, or has completed: " << completion.id;
    const uint32_t drawer = lines_[1].queue_pair->number();
    CHECK_EQ(found->second.shared ? drawer : found->second.queue_pair, completion.queue_pair_number);
    posted_.erase(found);
  }
}

void NicWorld::OnSent(const Packet& packet) {
  uint8_t header[kMaxHeaderLength];
  CHECK(IsKnown(packet.opcode));
  CHECK_EQ(EncodeHeader(packet, header), HeaderLength(packet.opcode));
  for (uint32_t i = 0; i < packet.slices; ++i) {
    CHECK(packet.payload[i].length == 0 || MayBeSent(packet, packet.payload[i]));
  }
  CHECK_LE(packet.payload_length(), kMtu);
  if (packet.opcode == PacketOpcode::kDatagramSendOnly) return;
  Line& line = packet.destination == lines_[0].peer_number ? lines_[0] : lines_[1];
  CHECK_EQ(packet.destination, line.peer_number);
  CHECK(packet.peer.ip == line.peer.ip);
  if (packet.opcode == PacketOpcode::kCongestionNotification) return;
  if (packet.opcode == PacketOpcode::kAcknowledge && !IsAck(packet.syndrome)) line.peer_psn = packet.psn;
  if (IsAnswer(packet.opcode)) return;
  line.own_psn = (packet.psn + 1) & kPsnMask;
  line.asked.push_back(packet);
  if (line.asked.size() > kMostAsked) line.asked.pop_front();
}

bool NicWorld::MayBeSent(const Packet& packet, const PayloadSlice& slice) const {
  if (IsReadResponse(packet.opcode)) {
    const auto readable = [&](BlockName name) {
      return blocks_[name].region != nullptr && Holds(blocks_[name].memory, slice);
    };
    const auto opened = [&](const Opened& o) { return Holds(o.memory, slice); };
    return readable(kOpen) || readable(kReadable) || std::any_of(opened_.begin(), opened_.end(), opened);
  }
  // The owner's data lies in its blocks, or inside the NIC (inline bytes, datagrams).
  for (const Block& block : blocks_) {
    if (!Touches(block.bytes, slice)) continue;
    return block.region != nullptr && Holds(block.memory, slice) && &block != &blocks_[kForeign];
  }
  return true;
}

void NicWorld::CheckMemory() const {
  for (const Block& block : blocks_) {
    const absl::Span<const uint8_t> bytes = block.bytes;
    CHECK(All(bytes.first(kCanary), kCanaryByte) && All(bytes.last(kCanary), kCanaryByte));
    CHECK(All(block.frozen, kFrozenByte));
  }
}

void NicWorld::CheckCounters() const {
  const DeviceCounters counters = device_->counters();
  CHECK_EQ(Arrived(counters), arrived_);
  CHECK_EQ(Accounted(counters.queue_pairs), counters.queue_pairs.packets_received);
  CHECK_EQ(counters.completion_queue_overruns, 0u);
}

}  // namespace tokamak::fuzz
