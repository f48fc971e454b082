// A NIC that only carries management datagrams, so that connection managers can be tested without
// the protocol around them.
//
// Queue pairs are numbers with a state; datagrams fly over a FakeWire whose filter may lose, repeat
// and delay each of them; time is virtual.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/verbs/soft/cm/connection_manager.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs::soft {

class FakeNic;

inline Address FakeAddress(uint16_t host, uint16_t port = 0) {
  Address address;
  address.ip = {
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, static_cast<uint8_t>(host >> 8), static_cast<uint8_t>(host)};
  address.port = port;
  return address;
}

class FakeWire final {
 public:
  explicit FakeWire(sim::Scheduler& scheduler) : loop_(scheduler) {}

  void Send(const Address& from, const Address& to, absl::Span<const uint8_t> bytes);

  // When the copies of this datagram arrive; by default one, after 1 us.
  std::function<std::vector<base::Duration>(const Mad&)> filter;

  std::map<Address, FakeNic*> nics;
  std::vector<Mad> sent;

  std::string Names() const {
    std::string names;
    for (const Mad& mad : sent) absl::StrAppend(&names, names.empty() ? "" : " ", NameOf(mad));
    return names;
  }

 private:
  sim::SimLoop loop_;
  std::vector<base::Timer> flights_;
};

struct FakeQueuePairState {
  QueuePairState state = QueuePairState::kInit;
  QueuePairAttributes attributes;
  bool watched = false;
  base::EventLoop* loop = nullptr;
};

class FakeQueuePair;

class FakeNic final : public Management, public std::enable_shared_from_this<FakeNic> {
 public:
  FakeNic(sim::Scheduler& scheduler, FakeWire& wire, uint16_t host, uint32_t active_mtu = kMaxMtu)
      : owner(scheduler),
        wire_(wire),
        nic_loop_(scheduler),
        address_(FakeAddress(host)),
        numbers_(host, 0),
        signal_(nic_loop_.MakeSignal([this] { Turn(); })),
        alarms_(
            nic_loop_, [this] { signal_->Raise(); }, [this] { Turn(); }) {
    limits_.active_mtu = active_mtu;
    limits_.max_reads = 16;
    wire_.nics[address_] = this;
    manager = std::make_unique<SoftConnectionManager>(*this);
  }
  ~FakeNic() override {
    wire_.nics.erase(address_);
    manager.reset();
  }

  std::shared_ptr<Management> Share() override { return shared_from_this(); }
  NicMutex& mutex() override { return mutex_; }
  const Limits& limits() const override { return limits_; }
  const Address& address() const override { return address_; }
  AlarmClock& alarms() override { return alarms_; }
  SecretNumbers& numbers() override { return numbers_; }
  NumberShare share() const override { return NumberShare(); }
  absl::Status Serve(uint64_t) override { return absl::OkStatus(); }
  void Withdraw(uint64_t) override {}
  void Trace(base::TraceKind, uint32_t, uint64_t) override {}
  void SendMad(const Address& peer, absl::Span<const uint8_t> mad) override { wire_.Send(address_, peer, mad); }
  bool Exists(uint32_t number) const override { return queue_pairs.count(number) > 0; }
  QueuePairState State(uint32_t number) const override { return queue_pairs.at(number).state; }
  bool Heard(uint32_t) const override { return heard; }
  base::EventLoop& OwnerLoop(uint32_t number) const override { return *queue_pairs.at(number).loop; }
  absl::Status Modify(uint32_t number, QueuePairState state, const QueuePairAttributes& attributes) override {
    FakeQueuePairState& queue_pair = queue_pairs.at(number);
    EXPECT_TRUE(state == QueuePairState::kError || static_cast<int>(state) == static_cast<int>(queue_pair.state) + 1);
    if (queue_pair.state == QueuePairState::kError) return absl::FailedPreconditionError("in Error");
    queue_pair.state = state;
    queue_pair.attributes = attributes;
    return absl::OkStatus();
  }
  void Watch(uint32_t number, bool watched) override { queue_pairs.at(number).watched = watched; }
  void HoldNumber(uint32_t number) override { EXPECT_TRUE(held.insert(number).second); }
  void ReleaseNumber(uint32_t number) override { EXPECT_EQ(held.erase(number), 1u); }

  std::unique_ptr<FakeQueuePair> MakeQueuePair();

  // News of a queue pair, on the NIC's thread.
  void FirstData(uint32_t number) {
    InTurn([this, number] { manager->OnFirstData(number); });
  }
  void Fail(uint32_t number) {
    InTurn([this, number] {
      queue_pairs.at(number).state = QueuePairState::kError;
      if (queue_pairs.at(number).watched) manager->OnError(number);
    });
  }
  DatagramResult Receive(const Packet& packet) {
    DatagramResult result{};
    InTurn([&] { result = manager->OnMad(packet); });
    return result;
  }
  // A datagram of any peer.
  DatagramResult ReceiveMad(const Address& from, const Mad& mad) {
    const MadBytes bytes = EncodeMad(mad);
    return ReceiveBytes(from, bytes);
  }
  DatagramResult ReceiveBytes(const Address& from, absl::Span<const uint8_t> bytes) {
    Packet packet;
    packet.opcode = PacketOpcode::kDatagramSendOnly;
    packet.destination = kManagementQueuePair;
    packet.peer = from;
    packet.slices = 2;
    packet.payload[0] = {bytes.data(), static_cast<uint32_t>(bytes.size() / 2)};
    packet.payload[1] = {bytes.data() + bytes.size() / 2, static_cast<uint32_t>(bytes.size() - bytes.size() / 2)};
    return Receive(packet);
  }

  sim::SimLoop owner;
  std::map<uint32_t, FakeQueuePairState> queue_pairs;
  std::set<uint32_t> held;
  bool heard = true;  // peers send something at once, as most do
  std::unique_ptr<SoftConnectionManager> manager;

 private:
  void Turn() {
    InTurn([] {});
  }
  void InTurn(const std::function<void()>& work) {
    mutex_.LockForNic();
    alarms_.Begin();
    alarms_.Fire();
    work();
    alarms_.End();
    mutex_.Unlock();
  }

  FakeWire& wire_;
  sim::SimLoop nic_loop_;
  const Address address_;
  Limits limits_;
  NicMutex mutex_;
  SecretNumbers numbers_;
  uint32_t next_number_ = 100;
  const std::unique_ptr<base::Signal> signal_;
  AlarmClock alarms_;
};

class FakeQueuePair final : public QueuePair {
 public:
  FakeQueuePair(FakeNic& nic, uint32_t number) : nic_(nic), number_(number) {}
  ~FakeQueuePair() override {
    NicLock lock(nic_.mutex());
    if (nic_.queue_pairs.at(number_).watched) nic_.manager->OnDropped(number_);
    nic_.queue_pairs.erase(number_);
  }
  uint32_t number() const override { return number_; }
  QueuePairState state() const override { return nic_.queue_pairs.at(number_).state; }
  const QueuePairAttributes& attributes() const { return nic_.queue_pairs.at(number_).attributes; }
  PostResult PostSend(absl::Span<const SendRequest>) override { return {0, absl::UnimplementedError("fake")}; }
  PostResult PostReceive(absl::Span<const ReceiveRequest>) override { return {0, absl::UnimplementedError("fake")}; }
  absl::Status Modify(QueuePairState, const QueuePairAttributes&) override { return absl::UnimplementedError("fake"); }

 private:
  FakeNic& nic_;
  const uint32_t number_;
};

inline std::unique_ptr<FakeQueuePair> FakeNic::MakeQueuePair() {
  const uint32_t number = next_number_++;
  queue_pairs[number].loop = &owner;
  return std::make_unique<FakeQueuePair>(*this, number);
}

inline void FakeWire::Send(const Address& from, const Address& to, absl::Span<const uint8_t> bytes) {
  const absl::StatusOr<Mad> mad = DecodeMad(bytes);
  ASSERT_TRUE(mad.ok()) << mad.status();
  sent.push_back(*mad);
  const std::vector<base::Duration> arrivals =
      filter ? filter(*mad) : std::vector<base::Duration>{base::Microseconds(1)};
  for (const base::Duration delay : arrivals) {
    flights_.push_back(loop_.RunAfter(delay, [this, from, to, mad = *mad] {
      const auto nic = nics.find(to);
      if (nic != nics.end()) nic->second->ReceiveMad(from, mad);
    }));
  }
}

}  // namespace tokamak::verbs::soft
