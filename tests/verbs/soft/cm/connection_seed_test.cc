// Connections between whole software NICs on networks that are drawn from seeds.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/verbs/soft/cm/connected_hosts.h"

namespace tokamak::verbs::soft {
namespace {

using base::Milliseconds;
using base::Seconds;

// Whatever the network does, and whichever side drops when: nobody hears of an end twice, both ends
// agree once the network behaves, and finally nothing is left that would still act.
class ConnectionSeedTest : public ConnectedHosts, public testing::WithParamInterface<int> {
 protected:
  ConnectionSeedTest() : ConnectedHosts(static_cast<uint64_t>(GetParam()), BadLink()) {}

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
  std::vector<std::unique_ptr<HostEnd>> active;
  for (int i = 0; i < 40; ++i) {
    active.push_back(std::make_unique<HostEnd>(*a_));
    ASSERT_TRUE(active.back()->Connect(b_->Service()).ok());
    Run(Milliseconds(static_cast<int64_t>(random.Below(60))));
    if (random.Chance(0.4)) active[random.Below(active.size())]->connection.reset();
    if (random.Chance(0.2) && !served_.empty()) served_[random.Below(served_.size())]->connection.reset();
    if (random.Chance(0.3)) {
      HostEnd& end = *active[random.Below(active.size())];
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
  const auto count_up = [](const std::vector<std::unique_ptr<HostEnd>>& ends) {
    return std::count_if(ends.begin(), ends.end(), [](const auto& end) { return end->up(); });
  };
  EXPECT_EQ(count_up(active), count_up(served_));

  active.clear();
  served_.clear();
  listener.reset();
  Run(Seconds(20));
  EXPECT_TRUE(scheduler_.idle());
}

INSTANTIATE_TEST_SUITE_P(Seeds, ConnectionSeedTest, testing::Range(1, 41));

using ConnectionTraceTest = ConnectedHosts;

TEST_F(ConnectionTraceTest, OneSeedGivesOneTrace) {
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
    std::vector<std::unique_ptr<HostEnd>> ends;
    auto listener =
        *b.device->connection_manager().Listen(b.loop, b.Service(), [&](std::unique_ptr<ConnectionRequest> request) {
          ends.push_back(std::make_unique<HostEnd>(b));
          EXPECT_TRUE(ends.back()->Accept(*request).ok());
        });
    for (int i = 0; i < 10; ++i) {
      ends.push_back(std::make_unique<HostEnd>(a));
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
