// Connections between whole software NICs on a simulated network, with faults: what the connection manager and the protocol
// of the queue pairs promise together.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/mad.h"
#include "sim/sim_fabric.h"
#include "sim/sim_loop.h"

namespace tokamak::verbs::soft {
namespace {

using base::Duration;
using base::Milliseconds;
using base::Seconds;
using ::testing::ElementsAre;
using Kind = ConnectionEvent::Kind;

constexpr uint16_t kPort = 7000;
constexpr Access kAccess = kLocalWrite | kRemoteWrite | kRemoteRead;

// A fabric that loses what `lose` says, and else is the one below.
class FilterFabric final : public Fabric {
 public:
  explicit FilterFabric(Fabric& below) : below_(below) {}

  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override {
    auto port = below_.Open(loop, address, std::move(callbacks));
    if (!port.ok()) return port.status();
    return std::make_unique<FilterPort>(*this, *std::move(port));
  }

  std::function<bool(const Packet&)> lose;

 private:
  class FilterPort final : public Port {
   public:
    FilterPort(FilterFabric& fabric, std::unique_ptr<Port> port) : fabric_(fabric), port_(std::move(port)) {}
    size_t Send(absl::Span<const Packet> packets) override {
      for (size_t i = 0; i < packets.size(); ++i) {
        if (fabric_.lose && fabric_.lose(packets[i])) continue;
        if (port_->Send(packets.subspan(i, 1)) == 0) return i;
      }
      return packets.size();
    }
    const Address& address() const override { return port_->address(); }
    uint32_t max_mtu() const override { return port_->max_mtu(); }
    uint64_t receive_window() const override { return port_->receive_window(); }

   private:
    FilterFabric& fabric_;
    const std::unique_ptr<Port> port_;
  };

  Fabric& below_;
};

// A host: its processor, its NIC, and one completion queue for all its queue pairs.
struct Host {
  Host(sim::Scheduler& scheduler, Fabric& fabric, base::Trace& trace, uint8_t last, uint32_t max_mtu)
      : nic_loop(scheduler), loop(scheduler), memory(1 << 20) {
    DeviceOptions options;
    options.address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
    options.seed = last;
    options.max_mtu = max_mtu;
    device = *OpenSoftDevice(nic_loop, fabric, trace, options);
    domain = *device->CreateProtectionDomain();
    completions = *device->CreateCompletionQueue(loop, 4096, [] {});
    region = *domain->RegisterMemory(absl::MakeSpan(memory), kAccess);
  }

  Address Service() const {
    Address address = device->address();
    address.port = kPort;
    return address;
  }

  std::vector<Completion> Poll() {
    std::vector<Completion> all(4096);
    all.resize(completions->Poll(absl::MakeSpan(all)));
    return all;
  }

  sim::SimLoop nic_loop;
  sim::SimLoop loop;
  std::vector<uint8_t> memory;
  std::unique_ptr<SoftDevice> device;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<MemoryRegion> region;
};

// One side of a connection.
struct End {
  explicit End(Host& on) : host(on) {
    QueuePairOptions options;
    options.send_queue = options.receive_queue = on.completions.get();
    options.remote_access = kAccess;
    queue_pair = *on.domain->CreateQueuePair(options);
  }

  ConnectionHandler Handler() {
    return [this](const ConnectionEvent& event) {
      EXPECT_TRUE(connection != nullptr);
      events.push_back(event.kind);
      status = event.status;
      path_mtu = event.path_mtu;
    };
  }
  absl::Status Connect(const Address& address, const ConnectOptions& options = {}) {
    auto made = host.device->connection_manager().Connect(*queue_pair, address, options, Handler());
    if (made.ok()) connection = *std::move(made);
    return made.status();
  }
  absl::Status Accept(ConnectionRequest& request, const ConnectOptions& options = {}) {
    auto made = request.Accept(*queue_pair, options, Handler());
    if (made.ok()) connection = *std::move(made);
    return made.status();
  }

  PostResult Post(Opcode opcode, uint32_t length, const End& peer) {
    const Sge sge{host.region->address(), length, host.region->lkey()};
    SendRequest request;
    request.opcode = opcode;
    request.flags = kSignaled;
    request.sges = absl::MakeConstSpan(&sge, 1);
    request.remote_address = reinterpret_cast<uint64_t>(peer.host.region->address());
    request.rkey = peer.host.region->rkey();
    return queue_pair->PostSend(absl::MakeConstSpan(&request, 1));
  }

  bool up() const { return queue_pair->state() == QueuePairState::kReadyToSend; }
  bool ended() const { return !events.empty() && events.back() != Kind::kEstablished; }

  Host& host;
  std::unique_ptr<QueuePair> queue_pair;
  std::unique_ptr<Connection> connection;
  std::vector<Kind> events;
  absl::Status status;
  uint32_t path_mtu = 0;
};

class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest() : ConnectionTest(1, sim::LinkOptions()) {}
  ConnectionTest(uint64_t seed, const sim::LinkOptions& link)
      : wire_loop_(scheduler_), network_(wire_loop_, seed, Options(link), trace_), fabric_(network_) {
    a_ = std::make_unique<Host>(scheduler_, fabric_, trace_, 1, kMaxMtu);
    b_ = std::make_unique<Host>(scheduler_, fabric_, trace_, 2, kMaxMtu);
  }

  static sim::SimFabricOptions Options(const sim::LinkOptions& link) {
    sim::SimFabricOptions options;
    options.link = link;
    return options;
  }

  // Accepts whoever asks, on `host`.
  std::unique_ptr<Listener> Serve(Host& host) {
    return *host.device->connection_manager().Listen(host.loop, host.Service(),
                                                     [this, &host](std::unique_ptr<ConnectionRequest> request) {
                                                       served_.push_back(std::make_unique<End>(host));
                                                       if (!served_.back()->Accept(*request).ok()) served_.pop_back();
                                                     });
  }

  void Run(Duration duration) { scheduler_.RunFor(duration); }

  // A connection from a_ to b_.
  void Establish(End& active) {
    auto listener = Serve(*b_);
    ASSERT_TRUE(active.Connect(b_->Service()).ok());
    Run(Milliseconds(10));
    ASSERT_THAT(active.events, ElementsAre(Kind::kEstablished));
    ASSERT_THAT(served_.back()->events, ElementsAre(Kind::kEstablished));
  }

  sim::Scheduler scheduler_;
  base::TraceHash trace_;
  sim::SimLoop wire_loop_;
  sim::SimFabric network_;
  FilterFabric fabric_;
  std::unique_ptr<Host> a_;
  std::unique_ptr<Host> b_;
  std::vector<std::unique_ptr<End>> served_;
};

bool IsMad(const Packet& packet, size_t body) {
  if (packet.destination != kManagementQueuePair || packet.slices != 1) return false;
  const auto mad = DecodeMad({packet.payload[0].data, packet.payload[0].length});
  return mad.ok() && mad->body.index() == body;
}
constexpr size_t kRtu = 4;
constexpr size_t kDreq = 5;

TEST_F(ConnectionTest, FirstDataStandsInForALostRtu) {
  fabric_.lose = [](const Packet& packet) { return IsMad(packet, kRtu); };
  auto listener = Serve(*b_);
  End active(*a_);
  ASSERT_TRUE(active.Connect(b_->Service()).ok());
  Run(Milliseconds(10));
  ASSERT_THAT(active.events, ElementsAre(Kind::kEstablished));
  ASSERT_EQ(served_.size(), 1u);
  EXPECT_EQ(served_[0]->queue_pair->state(), QueuePairState::kReadyToReceive);
  ASSERT_TRUE(active.Post(Opcode::kWrite, 100, *served_[0]).ok());
  Run(Milliseconds(10));
  EXPECT_THAT(served_[0]->events, ElementsAre(Kind::kEstablished));
  EXPECT_TRUE(served_[0]->up());
  ASSERT_TRUE(served_[0]->Post(Opcode::kRead, 100, active).ok());
  Run(Milliseconds(10));
  ASSERT_EQ(b_->Poll().size(), 1u);
}

TEST_F(ConnectionTest, ALostRtuIsAskedForAgain) {
  int lost = 0;
  fabric_.lose = [&](const Packet& packet) { return IsMad(packet, kRtu) && lost++ < 3; };
  auto listener = Serve(*b_);
  End active(*a_);
  ASSERT_TRUE(active.Connect(b_->Service()).ok());
  Run(Seconds(2));
  ASSERT_EQ(served_.size(), 1u);
  EXPECT_THAT(served_[0]->events, ElementsAre(Kind::kEstablished));
}

TEST_F(ConnectionTest, TheSmallerMtuOfTwoDevicesIsUsed) {
  Host small(scheduler_, fabric_, trace_, 3, 512);
  for (const auto& [from, to] : {std::make_pair(a_.get(), &small), std::make_pair(&small, a_.get())}) {
    auto listener = Serve(*to);
    End active(*from);
    ASSERT_TRUE(active.Connect(to->Service()).ok());
    Run(Milliseconds(10));
    ASSERT_THAT(active.events, ElementsAre(Kind::kEstablished));
    EXPECT_EQ(active.path_mtu, 512u);
    ASSERT_TRUE(active.Post(Opcode::kWrite, 5000, *served_.back()).ok());
    Run(Milliseconds(10));
    const std::vector<Completion> done = from->Poll();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, CompletionStatus::kSuccess);
    served_.clear();
    Run(Seconds(10));
  }
}

TEST_F(ConnectionTest, WorkInFlightComesBackWhenEitherSideDrops) {
  for (const bool active_drops : {true, false}) {
    End active(*a_);
    Establish(active);
    End& passive = *served_.back();
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(active.Post(i % 2 == 0 ? Opcode::kWrite : Opcode::kRead, 1 << 20, passive).ok());
      ASSERT_TRUE(passive.Post(i % 2 == 0 ? Opcode::kRead : Opcode::kWrite, 1 << 20, active).ok());
    }
    Run(base::Microseconds(100));
    (active_drops ? active : passive).connection.reset();
    Run(Seconds(5));
    EXPECT_EQ(a_->Poll().size(), 20u);
    EXPECT_EQ(b_->Poll().size(), 20u);
    EXPECT_EQ((active_drops ? passive : active).events.back(), Kind::kDisconnected);
    EXPECT_EQ(active.queue_pair->state(), QueuePairState::kError);
    EXPECT_EQ(passive.queue_pair->state(), QueuePairState::kError);
    served_.clear();
  }
}

TEST_F(ConnectionTest, APeerThatVanishedIsFoundOutByDataAndTheRestIsCleanedUp) {
  End active(*a_);
  Establish(active);
  b_->region.reset();
  const Address gone = b_->Service();
  network_.Partition({b_->device->address()});
  ASSERT_TRUE(active.Post(Opcode::kWrite, 100, active).ok());
  Run(Seconds(10));
  EXPECT_THAT(active.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
  const std::vector<Completion> done = a_->Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CompletionStatus::kRetryExceeded);
  End another(*a_);
  ASSERT_TRUE(another.Connect(gone).ok());
  Run(Seconds(6));
  EXPECT_THAT(another.events, ElementsAre(Kind::kUnreachable));
  network_.Heal();
  End third(*a_);
  auto listener = Serve(*b_);
  ASSERT_TRUE(third.Connect(gone).ok());
  Run(Seconds(6));
  EXPECT_THAT(third.events, ElementsAre(Kind::kEstablished));
}

TEST_F(ConnectionTest, ASideThatWasNeverToldFindsOutWhenItSends) {
  End active(*a_);
  Establish(active);
  fabric_.lose = [](const Packet& packet) { return IsMad(packet, kDreq); };
  active.connection.reset();
  Run(Seconds(20));
  End& passive = *served_.back();
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished));
  ASSERT_TRUE(passive.Post(Opcode::kWrite, 100, active).ok());
  Run(Seconds(10));
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
}

TEST_F(ConnectionTest, ADeviceMayBeDroppedBeforeItsConnections) {
  End active(*a_);
  Establish(active);
  b_->device.reset();
  ASSERT_TRUE(active.Post(Opcode::kWrite, 100, *served_.back()).ok());
  Run(Milliseconds(10));
  EXPECT_EQ(a_->Poll().size(), 1u);
  EXPECT_TRUE(active.up());
}

TEST_F(ConnectionTest, ADeviceThatIsClosedRightAfterItsConnectionHasToldThePeer) {
  auto active = std::make_unique<End>(*a_);
  Establish(*active);
  active.reset();
  a_.reset();
  Run(Milliseconds(10));
  EXPECT_THAT(served_.back()->events, ElementsAre(Kind::kEstablished, Kind::kDisconnected));
}

// Whatever the network does, and whenever whoever drops: nobody is told of an end twice, both ends agree once the network
// behaves, and in the end nothing is left that would still do something.
class ConnectionSeedTest : public ConnectionTest, public ::testing::WithParamInterface<int> {
 protected:
  ConnectionSeedTest() : ConnectionTest(static_cast<uint64_t>(GetParam()), BadLink()) {}

  static sim::LinkOptions BadLink() {
    base::Random random(static_cast<uint64_t>(GetParam()));
    sim::LinkOptions link;
    link.jitter = base::Microseconds(static_cast<int64_t>(random.Below(200)));
    link.loss = random.Fraction() * 0.3;
    link.duplicate = random.Fraction() * 0.3;
    link.corrupt = random.Fraction() * 0.1;
    link.reorder = random.Fraction() * 0.3;
    link.reorder_delay = Milliseconds(static_cast<int64_t>(random.Below(300)));
    return link;
  }
};

TEST_P(ConnectionSeedTest, EndsAgreed) {
  base::Random random(1000 + static_cast<uint64_t>(GetParam()));
  auto listener = Serve(*b_);
  std::vector<std::unique_ptr<End>> active;
  for (int i = 0; i < 40; ++i) {
    active.push_back(std::make_unique<End>(*a_));
    ASSERT_TRUE(active.back()->Connect(b_->Service()).ok());
    Run(Milliseconds(static_cast<int64_t>(random.Below(60))));
    if (random.Chance(0.4)) active[random.Below(active.size())]->connection.reset();
    if (random.Chance(0.2) && !served_.empty()) served_[random.Below(served_.size())]->connection.reset();
    if (random.Chance(0.3)) {
      End& end = *active[random.Below(active.size())];
      // An rkey that is none there: an error.
      const bool posted = !end.up() || end.Post(Opcode::kWrite, 100, end).ok();
      ASSERT_TRUE(posted);
    }
  }
  Run(Seconds(2));
  network_.SetAllLinks(sim::LinkOptions());
  Run(Seconds(60));

  for (const auto& ends : {&active, &served_}) {
    for (const auto& end : *ends) {
      EXPECT_LE(end->events.size(), 2u);
      EXPECT_EQ(end->up(), end->connection != nullptr && !end->ended());
    }
  }
  const auto count_up = [](const std::vector<std::unique_ptr<End>>& ends) {
    return std::count_if(ends.begin(), ends.end(), [](const auto& end) { return end->up(); });
  };
  EXPECT_EQ(count_up(active), count_up(served_));

  active.clear();
  served_.clear();
  listener.reset();
  Run(Seconds(20));
  EXPECT_TRUE(scheduler_.idle());
}

INSTANTIATE_TEST_SUITE_P(Seeds, ConnectionSeedTest, ::testing::Range(1, 41));

TEST_F(ConnectionTest, OneSeedGivesOneTrace) {
  uint64_t hashes[2];
  for (uint64_t& hash : hashes) {
    sim::Scheduler scheduler;
    base::TraceHash trace;
    sim::SimLoop wire(scheduler);
    sim::LinkOptions link;
    link.loss = link.duplicate = link.reorder = 0.2;
    sim::SimFabric network(wire, 5, Options(link), trace);
    Host a(scheduler, network, trace, 1, kMaxMtu);
    Host b(scheduler, network, trace, 2, kMaxMtu);
    std::vector<std::unique_ptr<End>> ends;
    auto listener =
        *b.device->connection_manager().Listen(b.loop, b.Service(), [&](std::unique_ptr<ConnectionRequest> request) {
          ends.push_back(std::make_unique<End>(b));
          EXPECT_TRUE(ends.back()->Accept(*request).ok());
        });
    for (int i = 0; i < 10; ++i) {
      ends.push_back(std::make_unique<End>(a));
      ASSERT_TRUE(ends.back()->Connect(b.Service()).ok());
    }
    scheduler.RunFor(Seconds(3));
    ends.clear();
    scheduler.RunFor(Seconds(10));
    hash = trace.hash();
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace tokamak::verbs::soft
