// Connections of real verbs among several loops, each on a thread of its own, and what is left of
// them.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/verbs/ibv/connections_fixture.h"

namespace tokamak::verbs::ibv {
namespace {

INSTANTIATE_TEST_SUITE_P(RealVerbs, ConnectionsTest,
                         testing::Values(Manager{"rdma", Exchange::kRdmaCm}, Manager{"tcp", Exchange::kTcp}),
                         [](const auto& test) { return test.param.name; });

// The listener's loop, the loops of those who accept and those of those who ask are all different.
TEST_P(ConnectionsTest, EachConnectionsEventsRunOnItsQueuePairsLoop) {
  constexpr size_t kCount = 24, kLoops = 2;
  Worker door(*devices_[1], "door");
  std::vector<std::unique_ptr<Worker>> asking, accepting;
  for (size_t i = 0; i < kLoops; ++i) {
    asking.push_back(std::make_unique<Worker>(*devices_[0], "ask"));
    accepting.push_back(std::make_unique<Worker>(*devices_[1], "accept"));
  }
  std::vector<std::unique_ptr<End>> actives, passives;  // passives: the door's until all are there
  std::atomic<size_t> accepted{0};
  auto listener = Listen(door, [&](std::unique_ptr<ConnectionRequest> request) {
    passives.push_back(std::make_unique<End>(*accepting[passives.size() % kLoops]));
    End& end = *passives.back();
    end.worker.CallOn([&] {
      auto made = request->Accept(*end.queue_pair, Patient(), end.Handler());
      EXPECT_TRUE(made.ok()) << made.status();
      if (made.ok()) end.connection = *std::move(made);
      request.reset();
    });
    ++accepted;
  });
  for (size_t i = 0; i < kCount; ++i) {
    actives.push_back(std::make_unique<End>(*asking[i % kLoops]));
    Connect(*actives.back(), listener->address());
  }
  ASSERT_TRUE(Await([&] { return accepted == kCount; })) << accepted;
  for (auto* side : {&actives, &passives}) {
    for (auto& end : *side) EXPECT_TRUE(Await([&] { return end->up.load(); }));
  }
  // Half of them leave; who asked third need not have been accepted third, so any half will do.
  for (size_t i = 0; i < kCount; i += 2) actives[i]->Drop();
  EXPECT_TRUE(Await([&] {
    size_t over = 0;
    for (auto& end : passives) over += end->over.load() ? 1 : 0;
    return over == kCount / 2;
  }));
  for (auto& end : passives) end->Drop();
  for (size_t i = 1; i < kCount; i += 2) EXPECT_TRUE(Await([&] { return actives[i]->over.load(); }));
  for (auto* side : {&actives, &passives}) {
    for (auto& end : *side) {
      EXPECT_EQ(end->elsewhere, 0);
      EXPECT_EQ(end->after_drop, 0);
    }
  }
  door.CallOn([&] { listener.reset(); });
  actives.clear();
  passives.clear();
}

// Attempts are dropped at any moment, requests are forgotten, accepted or left; then no descriptor
// and no thread is left.
TEST_P(ConnectionsTest, AnAttemptDroppedAnywhereLeavesNothing) {
  const auto count = [](const char* folder) {
    size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++entries;
    return entries;
  };
  base::Random random(11);
  const auto round = [&](size_t attempts) {
    Worker door(*devices_[1], "door"), asking(*devices_[0], "ask");
    std::vector<std::unique_ptr<End>> passives;                // the door's
    std::vector<std::unique_ptr<ConnectionRequest>> requests;  // the door's
    base::Random dice(random.Next());
    auto listener = Listen(door, [&](std::unique_ptr<ConnectionRequest> request) {
      if (dice.Below(3) == 0) return;  // forgotten, so rejected
      if (dice.Below(3) == 0) {
        requests.push_back(std::move(request));
        return;
      }
      passives.push_back(std::make_unique<End>(door));
      End& end = *passives.back();
      auto made = request->Accept(*end.queue_pair, Patient(), end.Handler());
      EXPECT_TRUE(made.ok() || absl::IsCancelled(made.status())) << made.status();
      if (made.ok()) end.connection = *std::move(made);
    });
    for (size_t i = 0; i < attempts; ++i) {
      End end(asking);
      Connect(end, listener->address());
      const base::Duration life = base::Microseconds(static_cast<int64_t>(random.Below(40'000)));
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(life.microseconds());
      EXPECT_TRUE(Await([&] { return std::chrono::steady_clock::now() >= until; }));
      end.Drop();
      asking.CallOn([] {});
      EXPECT_EQ(end.elsewhere, 0);
      EXPECT_EQ(end.after_drop, 0);
    }
    door.CallOn([&] {
      listener.reset();
      requests.clear();
    });
    // A side that came up hears of the end.
    door.CallOn([] {});
    for (auto& end : passives) {
      bool connected = false;
      door.CallOn([&] { connected = end->connection != nullptr; });
      EXPECT_TRUE(!connected || Await([&] { return end->over.load(); }));
    }
    passives.clear();
  };
  round(4);  // what the libraries keep for good
  size_t descriptors = 0, threads = 0;
  ASSERT_TRUE(Await([&] {  // which has descriptors of its own
    descriptors = count("/proc/self/fd");
    threads = count("/proc/self/task");
    return true;
  }));
  round(20);
  EXPECT_TRUE(Await([&] { return count("/proc/self/fd") <= descriptors; })) << "had been " << descriptors;
  EXPECT_TRUE(Await([&] { return count("/proc/self/task") <= threads; })) << "had been " << threads;
}

// Over RoCE and InfiniBand: iWARP's kernel and TCP take an answer first and learn then that nobody
// hears it.
class DepartureTest : public ConnectionsTest {};
INSTANTIATE_TEST_SUITE_P(RealVerbs, DepartureTest, testing::Values(Manager{"rdma", Exchange::kRdmaCm}),
                         [](const auto& test) { return test.param.name; });

// The passive side gets this error, and none about a mistake. The request behind shows when the
// goodbye may have come; another thread reports that, so it may take more than one attempt.
TEST_P(DepartureTest, AcceptSaysThatTheAskerHasGone) {
  Worker door(*devices_[1], "door"), asking(*devices_[0], "ask");
  std::vector<std::unique_ptr<ConnectionRequest>> requests;  // the door's
  std::atomic<size_t> presented{0};
  auto listener = Listen(door, [&](std::unique_ptr<ConnectionRequest> request) {
    requests.push_back(std::move(request));
    ++presented;
  });
  const auto ask = [&](End& end) {
    const size_t before = presented;
    Connect(end, listener->address());
    return Await([&] { return presented > before; });
  };
  bool told = false;
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(kPatience.microseconds());
  while (!told && std::chrono::steady_clock::now() < until) {
    End leaves(asking), behind(asking), accepts(door);
    ASSERT_TRUE(ask(leaves));
    leaves.Drop();
    ASSERT_TRUE(ask(behind));
    door.CallOn([&] {
      auto made = requests.front()->Accept(*accepts.queue_pair, Patient(), accepts.Handler());
      EXPECT_TRUE(made.ok()) << made.status();
      if (made.ok()) accepts.connection = *std::move(made);
      requests.clear();
    });
    EXPECT_TRUE(Await([&] { return accepts.up || accepts.over; }));
    told = accepts.told_that_peer_has_gone;
  }
  EXPECT_TRUE(told);
  door.CallOn([&] { listener.reset(); });
}

}  // namespace
}  // namespace tokamak::verbs::ibv
