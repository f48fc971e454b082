// One software NIC whose wire is the test: it sees each packet that the NIC sends and makes up
// those that arrive.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/rc/psn.h"
#include "lib/verbs/soft/rc/syndrome.h"
#include "lib/verbs/time_codes.h"
#include "lib/verbs/verbs.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs::soft {

// A packet that the NIC sent, with its payload in one piece.
struct Sent {
  Packet packet;
  std::string payload;
  base::Time time;
};

// A fabric of one port, whose other end is the test.
class ScriptedFabric final : public Fabric {
 public:
  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override {
    callbacks_ = std::move(callbacks);
    return std::make_unique<ScriptedPort>(*this, loop, address);
  }

  void Deliver(absl::Span<const Packet> packets) { callbacks_.on_packets(packets); }
  void Ready() { callbacks_.on_ready(); }

  std::vector<Sent> sent;
  size_t room = SIZE_MAX;                   // packets that the port still takes
  bool says_room = false;                   // it tells the NIC
  std::optional<size_t> notification_room;  // apart from `room`, where set
  uint64_t line_rate = 0;
  uint64_t window = 1 << 20;
  int batches = 0;

 private:
  class ScriptedPort final : public Port {
   public:
    ScriptedPort(ScriptedFabric& fabric, base::EventLoop& loop, const Address& address)
        : fabric_(fabric), loop_(loop), address_(address) {}
    size_t Send(absl::Span<const Packet> packets) override {
      ++fabric_.batches;
      const bool apart =
          fabric_.notification_room.has_value() && packets[0].opcode == PacketOpcode::kCongestionNotification;
      size_t& room = apart ? *fabric_.notification_room : fabric_.room;
      size_t taken = 0;
      for (; taken < packets.size() && room > 0; ++taken, --room) {
        Sent sent{packets[taken], "", loop_.Now()};
        for (uint32_t i = 0; i < sent.packet.slices; ++i) {
          const PayloadSlice& slice = sent.packet.payload[i];
          sent.payload.append(reinterpret_cast<const char*>(slice.data), slice.length);
        }
        fabric_.sent.push_back(std::move(sent));
      }
      return taken;
    }
    size_t room() const override { return fabric_.says_room ? fabric_.room : SIZE_MAX; }
    uint64_t line_rate() const override { return fabric_.line_rate; }
    const Address& address() const override { return address_; }
    uint32_t max_mtu() const override { return kMaxMtu; }
    uint64_t receive_window() const override { return fabric_.window; }

   private:
    ScriptedFabric& fabric_;
    base::EventLoop& loop_;
    const Address address_;
  };

  PortCallbacks callbacks_;
};

class OneNic : public ::testing::Test {
 protected:
  static constexpr uint32_t kMtu = 256;
  static constexpr uint32_t kPeerNumber = 0x123456;
  static constexpr uint32_t kFirstSent = 0xfffffe;      // the NIC's first PSN: soon it wraps
  static constexpr uint32_t kFirstReceived = 0xffffff;  // the peer's
  static constexpr size_t kMemory = 1 << 20;
  static constexpr Access kAll = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

  OneNic() : nic_loop_(scheduler_), loop_(scheduler_), memory_(kMemory) {
    for (size_t i = 0; i < kMemory; ++i) memory_[i] = static_cast<uint8_t>(i * 7 + i / 256);
    reliability_.ack_timeout = base::Milliseconds(1);
    reliability_.retry_count = 2;
    reliability_.rnr_retry_count = 2;
    reliability_.reads_outstanding = 2;
    reliability_.reads_served = 2;
    queue_pair_options_.max_send_requests = queue_pair_options_.max_receive_requests = 64;
    queue_pair_options_.max_sges = 4;
    queue_pair_options_.max_inline = 256;
    queue_pair_options_.remote_access = kAll;
    device_options_.congestion = CongestionControl::kFixed;
    device_options_.window_packets = 64;
    device_options_.address = *Address::Parse("10.0.0.1");
  }

  // How long the NIC waits for an answer: the ack time-out as the wire's code rounds it.
  base::Duration timeout() const { return AckTimeout(AckTimeoutCode(reliability_.ack_timeout)); }

  // A queue pair that is ReadyToSend, as the members say.
  void Open() {
    auto device = OpenSoftDevice(nic_loop_, fabric_, trace_, device_options_);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    domain_ = *device_->CreateProtectionDomain();
    completions_ = *device_->CreateCompletionQueue(loop_, 1024, [this] { ++events_; });
    region_ = *domain_->RegisterMemory(absl::MakeSpan(memory_), kAll);
    queue_pair_ = MakeQueuePair();
    Walk(*queue_pair_);
  }

  std::unique_ptr<QueuePair> MakeQueuePair() {
    queue_pair_options_.send_queue = queue_pair_options_.receive_queue = completions_.get();
    return *domain_->CreateQueuePair(queue_pair_options_);
  }

  void Walk(QueuePair& queue_pair) {
    QueuePairAttributes attributes;
    attributes.peer = peer_;
    attributes.peer_number = kPeerNumber;
    attributes.receive_psn = kFirstReceived;
    attributes.send_psn = kFirstSent;
    attributes.path_mtu = kMtu;
    attributes.reliability = reliability_;
    ASSERT_TRUE(queue_pair.Modify(QueuePairState::kReadyToReceive, attributes).ok());
    ASSERT_TRUE(queue_pair.Modify(QueuePairState::kReadyToSend, attributes).ok());
  }

  // Runs the NIC's work that is due now, or in the time given.
  void Run(base::Duration duration = {}) { scheduler_.RunFor(duration); }

  std::vector<Sent> TakeSent() {
    Run();
    return std::exchange(fabric_.sent, {});
  }
  std::vector<Completion> Poll() {
    std::vector<Completion> all(1024);
    all.resize(completions_->Poll(absl::MakeSpan(all)));
    return all;
  }
  QueuePairCounters counters() const { return *device_->queue_pair_counters(queue_pair_->number()); }

  // Packets of the peer; `index` counts from its, or our, first PSN.
  Packet FromPeer(PacketOpcode opcode, uint32_t psn) const {
    Packet packet;
    packet.opcode = opcode;
    packet.destination = queue_pair_->number();
    packet.psn = psn & kPsnMask;
    packet.peer = peer_;
    return packet;
  }
  Packet Request(PacketOpcode opcode, uint32_t index, absl::Span<const uint8_t> payload = {}) const {
    Packet packet = FromPeer(opcode, kFirstReceived + index);
    packet.ack_request = true;
    return With(packet, payload);
  }
  Packet Answer(PacketOpcode opcode, uint32_t index, absl::Span<const uint8_t> payload = {}) const {
    Packet packet = FromPeer(opcode, kFirstSent + index);
    packet.syndrome = kAck;
    return With(packet, payload);
  }
  Packet Ack(uint32_t index, uint8_t syndrome = kAck) const {
    Packet packet = Answer(PacketOpcode::kAcknowledge, index);
    packet.syndrome = syndrome;
    return packet;
  }
  static Packet With(Packet packet, absl::Span<const uint8_t> payload) {
    packet.slices = payload.empty() ? 0 : 1;
    packet.payload[0] = {payload.data(), static_cast<uint32_t>(payload.size())};
    return packet;
  }
  static Packet To(Packet packet, uint64_t address, uint32_t rkey, uint32_t length) {
    packet.remote_address = address;
    packet.rkey = rkey;
    packet.dma_length = length;
    return packet;
  }
  void Arrive(std::initializer_list<Packet> packets) {
    fabric_.Deliver(absl::MakeConstSpan(packets.begin(), packets.size()));
  }

  // Requests of the owner.
  Sge Piece(size_t offset, size_t length) {
    return {memory_.data() + offset, static_cast<uint32_t>(length), region_->lkey()};
  }
  uint64_t Remote(size_t offset) const { return reinterpret_cast<uint64_t>(memory_.data()) + offset; }
  void Post(Opcode opcode, uint64_t id, const Sge& sge, SendFlags flags = kSignaled) {
    SendRequest request;
    request.id = id;
    request.opcode = opcode;
    request.flags = flags;
    request.sges = absl::MakeConstSpan(&sge, 1);
    request.remote_address = 0x10000;
    request.rkey = 0x77;
    request.immediate = 0x11223344;
    request.compare = 5;
    request.swap_or_add = 6;
    const PostResult result = queue_pair_->PostSend(absl::MakeConstSpan(&request, 1));
    ASSERT_TRUE(result.ok()) << result.status;
  }
  void PostReceive(uint64_t id, const Sge& sge) {
    ReceiveRequest request;
    request.id = id;
    request.sges = absl::MakeConstSpan(&sge, 1);
    ASSERT_TRUE(queue_pair_->PostReceive(absl::MakeConstSpan(&request, 1)).ok());
  }
  static std::vector<uint8_t> Bytes(size_t size, uint8_t seed) {
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(seed + i * 3);
    return bytes;
  }
  bool MemoryHolds(size_t offset, absl::Span<const uint8_t> bytes) const {
    return std::memcmp(memory_.data() + offset, bytes.data(), bytes.size()) == 0;
  }

  ReliabilityOptions reliability_;
  QueuePairOptions queue_pair_options_;
  DeviceOptions device_options_;
  const Address peer_ = *Address::Parse("10.0.0.2");
  int events_ = 0;

  sim::Scheduler scheduler_;
  sim::SimLoop nic_loop_;
  sim::SimLoop loop_;
  ScriptedFabric fabric_;
  base::NoTrace trace_;
  std::vector<uint8_t> memory_;
  std::unique_ptr<SoftDevice> device_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> completions_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<QueuePair> queue_pair_;
};

inline std::vector<uint32_t> Psns(const std::vector<Sent>& sent) {
  std::vector<uint32_t> psns;
  for (const Sent& s : sent) psns.push_back(s.packet.psn);
  return psns;
}
inline std::vector<PacketOpcode> Opcodes(const std::vector<Sent>& sent) {
  std::vector<PacketOpcode> opcodes;
  for (const Sent& s : sent) opcodes.push_back(s.packet.opcode);
  return opcodes;
}
inline std::vector<std::pair<uint64_t, CompletionStatus>> Outcomes(const std::vector<Completion>& completions) {
  std::vector<std::pair<uint64_t, CompletionStatus>> outcomes;
  for (const Completion& c : completions) outcomes.emplace_back(c.id, c.status);
  return outcomes;
}

}  // namespace tokamak::verbs::soft
