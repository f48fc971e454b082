#include "lib/verbs/soft/fabrics/faulty_fabric.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "lib/base/random.h"
#include "lib/verbs/soft/fabrics/forwarding_port.h"

namespace tokamak::verbs::soft {
namespace {

// A packet that owns its payload.
class KeptPacket final {
 public:
  KeptPacket(const Packet& packet, base::Time due) : due_(due), packet_(packet), bytes_(packet.payload_length()) {
    size_t at = 0;
    for (uint32_t i = 0; i < packet.slices; ++i) {
      PayloadSlice& slice = packet_.payload[i];
      if (slice.data == nullptr) continue;
      std::copy_n(slice.data, slice.length, bytes_.begin() + static_cast<ptrdiff_t>(at));
      slice.data = bytes_.data() + at;
      at += slice.length;
    }
  }

  KeptPacket(KeptPacket&&) = default;
  KeptPacket& operator=(KeptPacket&&) = default;

  base::Time due() const { return due_; }
  const Packet& packet() const { return packet_; }

 private:
  base::Time due_;
  Packet packet_;
  std::vector<uint8_t> bytes_;
};

class FaultyPort final : public ForwardingPort {
 public:
  FaultyPort(base::EventLoop& loop, const FabricFaults& faults, FaultyLink& link)
      : loop_(loop), faults_(faults), link_(link) {}

  absl::Status Open(Fabric& inner, const Address& address, PortCallbacks callbacks) {
    on_ready_ = std::move(callbacks.on_ready);
    callbacks.on_ready = [this] { OnInnerReady(); };
    callbacks.on_packets = [this, on_packets = std::move(callbacks.on_packets)](absl::Span<const Packet> packets) {
      if (link_.up) return on_packets(packets);
      link_.counters.while_down += packets.size();
    };
    return OpenInner(inner, loop_, address, std::move(callbacks));
  }

  size_t Send(absl::Span<const Packet> packets) override {
    size_t taken = 0;
    while (taken < packets.size()) {
      const size_t length = LengthOfPart(packets.subspan(taken));
      const size_t part = SendPart(packets.subspan(taken, length));
      taken += part;
      number_ += part;
      if (part < length) break;
    }
    if (taken < packets.size()) busy_ = true;
    return taken;
  }

  size_t room() const override {
    if (!delays()) return ForwardingPort::room();
    if (held_.size() >= FaultyFabric::kMaxHeldBack) busy_ = true;
    return FaultyFabric::kMaxHeldBack - held_.size();
  }

 private:
  // Packets handed on in one Send.
  static constexpr size_t kBatch = 64;

  bool delays() const { return faults_.delay > base::Duration(); }

  // Returns how many from number_ on share a fate; a damaged one is alone.
  size_t LengthOfPart(absl::Span<const Packet> packets) const {
    const PacketFate fate = FateOf(faults_, number_);
    size_t length = 1;
    if (fate == PacketFate::kIsDamaged) return length;
    while (length < packets.size() && FateOf(faults_, number_ + length) == fate) ++length;
    return length;
  }

  size_t SendPart(absl::Span<const Packet> packets) {
    switch (FateOf(faults_, number_)) {
      case PacketFate::kIsLost:
        link_.counters.lost += packets.size();
        return packets.size();
      case PacketFate::kIsDamaged: {
        Packet damaged = packets[0];
        damaged.corrupt = true;
        const size_t taken = Pass(absl::MakeConstSpan(&damaged, 1));
        link_.counters.damaged += taken;
        return taken;
      }
      case PacketFate::kArrives:
        break;
    }
    return Pass(packets);
  }

  size_t Pass(absl::Span<const Packet> packets) {
    if (!delays()) return SendNow(packets);
    const size_t taken = std::min(packets.size(), FaultyFabric::kMaxHeldBack - held_.size());
    const base::Time due = loop_.Now() + faults_.delay;
    for (const Packet& packet : packets.first(taken)) held_.emplace_back(packet, due);
    ArmTimer();
    return taken;
  }

  size_t SendNow(absl::Span<const Packet> packets) {
    if (link_.up) return inner().Send(packets);
    link_.counters.while_down += packets.size();
    return packets.size();
  }

  void ArmTimer() {
    if (held_.empty() || waits_for_inner_ || timer_.armed()) return;
    timer_ = loop_.RunAt(held_.front().due(), [this] { Release(); });
  }

  void Release() {
    while (!held_.empty() && held_.front().due() <= loop_.Now()) {
      batch_.clear();
      for (const KeptPacket& kept : held_) {
        if (kept.due() > loop_.Now() || batch_.size() == kBatch) break;
        batch_.push_back(kept.packet());
      }
      const size_t taken = SendNow(batch_);
      held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(taken));
      waits_for_inner_ = taken < batch_.size();
      if (waits_for_inner_) break;
    }
    ArmTimer();
    TellReady();
  }

  void OnInnerReady() {
    if (!delays()) {
      on_ready_();
      return;
    }
    waits_for_inner_ = false;
    Release();
  }

  void TellReady() {
    if (!busy_ || held_.size() >= FaultyFabric::kMaxHeldBack) return;
    busy_ = false;
    on_ready_();
  }

  base::EventLoop& loop_;
  const FabricFaults faults_;
  FaultyLink& link_;
  std::function<void()> on_ready_;
  uint64_t number_ = 0;  // the next packet's
  std::deque<KeptPacket> held_;
  std::vector<Packet> batch_;
  bool waits_for_inner_ = false;
  mutable bool busy_ = false;  // true if reported
  base::Timer timer_;
};

}  // namespace

PacketFate FateOf(const FabricFaults& faults, uint64_t number) {
  if (faults.loss <= 0 && faults.corruption <= 0) return PacketFate::kArrives;
  base::Random random = base::Random(faults.seed).Fork(number);
  if (random.Chance(faults.loss)) return PacketFate::kIsLost;
  return random.Chance(faults.corruption) ? PacketFate::kIsDamaged : PacketFate::kArrives;
}

absl::StatusOr<std::unique_ptr<Port>> FaultyFabric::Open(base::EventLoop& loop, const Address& address,
                                                         PortCallbacks callbacks) {
  auto port = std::make_unique<FaultyPort>(loop, faults_, link_);
  if (absl::Status status = port->Open(inner_, address, std::move(callbacks)); !status.ok()) return status;
  return port;
}

}  // namespace tokamak::verbs::soft
