#include "tests/verbs/conformance/backends/faulty_fabric.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "lib/base/random.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/fabrics/forwarding_port.h"

namespace tokamak::verbs::conformance {
namespace {

// A busy port takes up to so many packets, and is ready again after up to so long.
constexpr uint64_t kMostAtOnce = 4;
constexpr base::Duration kLongestBusy = base::Microseconds(3);

}  // namespace

class FaultyFabric::FaultyPort final : public soft::ForwardingPort {
 public:
  FaultyPort(base::EventLoop& loop, const std::atomic<bool>& gone, const Faults& faults, uint64_t index,
             std::function<void()> on_ready)
      : loop_(loop),
        gone_(gone),
        faults_(faults),
        random_(base::Random(faults.seed).Fork(index)),
        on_ready_(std::move(on_ready)) {}

  size_t Send(absl::Span<const soft::Packet> packets) override {
    if (gone_) return packets.size();
    if (ready_again_.armed()) return 0;
    if (faults_.busy && packets.size() > 1) {
      packets = packets.first(std::min<size_t>(packets.size() - 1, 1 + random_.Below(kMostAtOnce)));
      const auto nanoseconds = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(kLongestBusy.nanoseconds())));
      ready_again_ = loop_.RunAfter(base::Nanoseconds(nanoseconds), [this] { on_ready_(); });
    }
    return Pass(packets);
  }

 private:
  using Name = std::tuple<Address, uint32_t, soft::PacketOpcode, uint32_t>;

  size_t Pass(absl::Span<const soft::Packet> packets) {
    if (faults_.loss == 0) return inner().Send(packets);
    for (size_t i = 0; i < packets.size(); ++i) {
      if (Loses(packets[i])) continue;
      if (inner().Send(packets.subspan(i, 1)) == 0) return i;
    }
    return packets.size();
  }

  bool Loses(const soft::Packet& packet) {
    if (!random_.Chance(faults_.loss)) return false;
    if (packet.destination == soft::kManagementQueuePair) return true;  // is asked again until a deadline
    int& losses = losses_[Name(packet.peer, packet.destination, packet.opcode, packet.psn)];
    return ++losses <= kMostLossesOfAPacket;
  }

  base::EventLoop& loop_;
  const std::atomic<bool>& gone_;
  const Faults faults_;
  base::Random random_;
  const std::function<void()> on_ready_;
  std::map<Name, int> losses_;
  base::Timer ready_again_;  // armed while busy
};

absl::StatusOr<std::unique_ptr<soft::Port>> FaultyFabric::Open(base::EventLoop& loop, const Address& address,
                                                               soft::PortCallbacks callbacks) {
  const size_t index = opened_++;
  if (index >= kMaxPorts) return absl::ResourceExhaustedError("a FaultyFabric has few ports");
  auto port = std::make_unique<FaultyPort>(loop, gone_[index], faults_, index, callbacks.on_ready);
  callbacks.on_packets = [&gone = gone_[index],
                          receive = std::move(callbacks.on_packets)](absl::Span<const soft::Packet> packets) {
    if (!gone) receive(packets);
  };
  if (absl::Status status = port->OpenInner(below_, loop, address, std::move(callbacks)); !status.ok()) return status;
  return port;
}

}  // namespace tokamak::verbs::conformance
