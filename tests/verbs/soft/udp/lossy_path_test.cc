// Flows over real sockets through a relay that loses packets from a seed, or carries few and drops
// the rest.
//
// The assertions hold on a busy machine; flows_test.cc has the exact figures, in virtual time.
#include <map>
#include <utility>

#include "lib/os/loop_thread.h"
#include "tests/verbs/soft/bottleneck.h"
#include "tests/verbs/soft/udp/path_fixture.h"

namespace tokamak::verbs::soft {
namespace {

// Stands between pairs of NICs: to each it is the other. All pairs share one bottleneck in each
// direction.
class Relay final {
 public:
  Relay(const BottleneckOptions& there, const BottleneckOptions& back) : thread_({"relay"}) {
    thread_.CallOn([&] {
      fabric_ = std::make_unique<UdpFabric>(thread_.loop());
      const auto deliver = [this](Bottleneck::Flight flight) { ports_.at(flight.from)->Send({&flight.packet, 1}); };
      there_ = std::make_unique<Bottleneck>(thread_.loop(), there, deliver);
      back_ = std::make_unique<Bottleneck>(thread_.loop(), back, deliver);
    });
  }
  ~Relay() {
    thread_.CallOn([this] {
      ports_.clear();
      there_.reset();
      back_.reset();
      fabric_.reset();
    });
    thread_.Stop();
  }

  // `left` sends to `as_right`, `right` to `as_left`.
  void Join(const std::string& left, const std::string& as_right, const std::string& right,
            const std::string& as_left) {
    thread_.CallOn([&] {
      OpenWay(as_right, as_left, right, *there_);
      OpenWay(as_left, as_right, left, *back_);
    });
  }

  BottleneckCounters there() {
    BottleneckCounters counters;
    thread_.CallOn([&] { counters = there_->counters(); });
    return counters;
  }

 private:
  static Address At(const std::string& ip) { return WithRocePort(*Address::Parse(ip)); }

  // Packets that come in at `in` go through `way`, and from `out` on to `to`.
  void OpenWay(const std::string& in, const std::string& out, const std::string& to, Bottleneck& way) {
    const auto take = [&way, out = At(out), to = At(to)](absl::Span<const Packet> packets) {
      for (Packet packet : packets) {
        packet.peer = to;
        way.Offer(packet, out);
      }
    };
    auto port = fabric_->Open(thread_.loop(), At(in), {take, [] {}});
    ASSERT_TRUE(port.ok()) << port.status();
    ports_[At(in)] = *std::move(port);
  }

  os::LoopThread thread_;
  std::unique_ptr<UdpFabric> fabric_;
  std::unique_ptr<Bottleneck> there_;
  std::unique_ptr<Bottleneck> back_;
  std::map<Address, std::unique_ptr<Port>> ports_;
};

class LossyPathTest : public testing::Test {
 protected:
  // Left and right NICs 0 and 1, 2 and 3, ..., and a flow from left to right over each pair.
  void Build(size_t pairs, const BottleneckOptions& there, const BottleneckOptions& back) {
    relay_ = std::make_unique<Relay>(there, back);
    for (size_t i = 0; i < pairs; ++i) {
      const std::string base = absl::StrCat("127.0.", i, ".");
      const std::string left = base + "11", right = base + "12", as_left = base + "21", as_right = base + "22";
      relay_->Join(left, as_right, right, as_left);
      ASSERT_TRUE(world_.Add(left).ok());
      ASSERT_TRUE(world_.Add(right).ok());
      AddFlow(i);
    }
  }

  // From the left to the right NIC of a pair.
  void AddFlow(size_t pair) {
    const std::string base = absl::StrCat("127.0.", pair, ".");
    ends_.push_back(std::make_unique<PathEnd>(world_, 2 * pair, 1));
    PathEnd& left = *ends_.back();
    ends_.push_back(std::make_unique<PathEnd>(world_, 2 * pair + 1, 2));
    PathEnd& right = *ends_.back();
    left.Connect(base + "22", right, 4096);
    right.Connect(base + "21", left, 4096);
    flows_.push_back(std::make_unique<PathFlow>(left, right));
  }

  std::unique_ptr<Relay> relay_;
  PathWorld world_;
  std::vector<std::unique_ptr<PathEnd>> ends_;
  std::vector<std::unique_ptr<PathFlow>> flows_;
};

class LossTest : public LossyPathTest, public testing::WithParamInterface<int> {};

TEST_P(LossTest, BytesArriveWithoutFlooding) {
  BottleneckOptions there;
  there.loss = GetParam() / 1000.0;
  BottleneckOptions back = there;
  back.seed = 2;
  Build(1, there, back);
  const uint64_t most = 4 * PathEnd::kMemory;
  ASSERT_TRUE(world_.Drive(
      [&] {
        flows_[0]->Go(most);
        return flows_[0]->acknowledged == most || HasFailure();
      },
      base::Seconds(60)))
      << world_.Counters();
  EXPECT_EQ(ends_[0]->memory, ends_[1]->memory);
  const BottleneckCounters counters = relay_->there();
  EXPECT_GT(counters.lost, 0u);
  EXPECT_LE(counters.offered, 3 * most / 4096) << world_.Counters();
}

INSTANTIATE_TEST_SUITE_P(PerMille, LossTest, testing::Values(1, 10, 50), testing::PrintToStringParamName());

class BottleneckTest : public LossyPathTest, public testing::WithParamInterface<std::string> {};

TEST_P(BottleneckTest, TwoFlowsFillItWithoutDropStormsAndNeitherStarves) {
  BottleneckOptions path;
  path.picoseconds_per_byte = 80'000;  // 12.5 MB/s
  path.queue_bytes = 64 * 4200;
  path.delay = base::Microseconds(100);
  const bool two_nics = GetParam() == "TwoNics";
  Build(two_nics ? 2 : 1, path, path);
  if (!two_nics) AddFlow(0);
  const auto run = [&](base::Duration time) {
    world_.Drive(
        [&] {
          for (auto& flow : flows_) flow->Go(UINT64_MAX);
          return HasFailure();
        },
        time);
  };
  run(base::Seconds(1));
  const uint64_t before[] = {flows_[0]->acknowledged, flows_[1]->acknowledged};
  run(base::Seconds(3));
  const auto first = static_cast<double>(flows_[0]->acknowledged - before[0]);
  const auto second = static_cast<double>(flows_[1]->acknowledged - before[1]);
  const BottleneckCounters counters = relay_->there();
  EXPECT_GE(first + second, 0.5 * 3 * 12.5e6) << world_.Counters();
  EXPECT_GE(first, 0.2 * (first + second));
  EXPECT_GE(second, 0.2 * (first + second));
  EXPECT_GT(counters.dropped, 0u);
  EXPECT_LE(counters.dropped, counters.offered / 5) << world_.Counters();
}

INSTANTIATE_TEST_SUITE_P(Of, BottleneckTest, testing::Values("TwoNics", "TwoQueuePairs"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace tokamak::verbs::soft
