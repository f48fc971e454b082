// Calls of librdmacm while a connection is made, and their order.
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/verbs/ibv/cm/rdma_cm.h"
#include "tests/verbs/ibv/fake_queue_pair.h"
#include "tests/verbs/ibv/recording_rdma_cm.h"

namespace tokamak::verbs::ibv {
namespace {

using Calls = std::vector<std::string>;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr base::Duration kCallPatience = base::Seconds(20);

class RdmaCallsTest : public testing::Test {
 protected:
  RdmaCallsTest() {
    port_.active_mtu = 1024;
    ibv_ah_attr route{};
    route.is_global = 1;
    route.sl = 1;
    route.grh.traffic_class = 0x20;
    RecordingRdmaCm::Get().SetRoute(route);
    RecordingRdmaCm::Get().SetAnswer(RDMA_CM_EVENT_CONNECT_RESPONSE);
    RecordingRdmaCm::Get().RefusePaths(0);
    RecordingRdmaCm::Get().TakeCalls();
  }

  std::unique_ptr<RdmaConnectionManager> Manager() {
    RdmaCmOptions options;
    options.device = RecordingRdmaCm::kDevice;
    options.traffic_class = port_.traffic_class;
    options.address = *Address::Parse("10.0.0.1");
    options.port = [this] { return port_; };
    options.max_reads = 16;
    return *RdmaConnectionManager::Make(options);
  }

  // The calls of one attempt more to reach a peer, by which its way was looked for.
  Calls RouteCalls(RdmaConnectionManager& manager, const char* peer = "10.0.0.2:7000") {
    FakeQueuePair queue_pair(loop_, 18);
    bool over = false;
    const auto connection =
        manager.Connect(queue_pair, *Address::Parse(peer), {}, [&](const ConnectionEvent&) { over = true; });
    EXPECT_TRUE(connection.ok()) << connection.status();
    EXPECT_TRUE(loop_.RunUntil([&] { return over; }, loop_.Now() + kCallPatience));
    Calls calls;
    for (const std::string& call : RecordingRdmaCm::Get().TakeCalls()) {
      if (call == "rdma_resolve_route" || call.find("path to") != std::string::npos) calls.push_back(call);
    }
    return calls;
  }

  // The calls until the connection is up.
  Calls Connect() {
    bool up = false;
    const auto manager = Manager();
    const auto connection =
        manager->Connect(queue_pair_, *Address::Parse("10.0.0.2:7000"), {}, [&](const ConnectionEvent& event) {
          EXPECT_EQ(event.kind, ConnectionEvent::Kind::kEstablished) << event.status;
          up = true;
        });
    EXPECT_TRUE(connection.ok()) << connection.status();
    EXPECT_TRUE(loop_.RunUntil([&] { return up; }, loop_.Now() + kCallPatience));
    return RecordingRdmaCm::Get().TakeCalls();
  }

  // The route that the queue pair was given.
  ibv_ah_attr Route() { return queue_pair_.steps.at(0).attributes.ah_attr; }

  os::EpollLoop loop_;
  LocalPort port_;
  FakeQueuePair queue_pair_{loop_, 17};
};

TEST_F(RdmaCallsTest, TheTrafficClassIsSetBeforeTheRouteIsLookedFor) {
  port_.traffic_class = 104;
  EXPECT_THAT(Connect(), ElementsAre("rdma_resolve_addr", "rdma_set_option tos 104", "rdma_resolve_route",
                                     "rdma_connect", "rdma_establish"));
  EXPECT_EQ(Route().grh.traffic_class, 104);
  EXPECT_EQ(Route().sl, 1) << "the kernel's, which it derived";
}

TEST_F(RdmaCallsTest, AServiceLevelGoesIntoTheQueuePairsRoute) {
  port_.service_level = 5;
  EXPECT_THAT(Connect(), Not(Contains(StartsWith("rdma_set_option"))));
  EXPECT_EQ(Route().sl, 5);
  EXPECT_EQ(Route().grh.traffic_class, 0x20);
}

TEST_F(RdmaCallsTest, TheRouteIsTheKernelsByDefault) {
  EXPECT_THAT(Connect(), ElementsAre("rdma_resolve_addr", "rdma_resolve_route", "rdma_connect", "rdma_establish"));
  EXPECT_EQ(Route().sl, 1);
  EXPECT_EQ(Route().grh.traffic_class, 0x20);
}

TEST_F(RdmaCallsTest, ARouteFromAnUnrequestedGidIsReported) {
  port_.gid_index = 3;
  port_.gid_index_is_fixed = true;
  absl::Status end;
  const auto manager = Manager();
  const auto connection = manager->Connect(queue_pair_, *Address::Parse("10.0.0.2:7000"), {},
                                           [&](const ConnectionEvent& event) { end = event.status; });
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_TRUE(loop_.RunUntil([&] { return !end.ok(); }, loop_.Now() + kCallPatience));
  EXPECT_THAT(std::string(end.message()), HasSubstr("from GID 0, not from @3"));
}

TEST_F(RdmaCallsTest, TheSubnetManagerIsAskedOnceForEachPeer) {
  port_.link = LinkKind::kInfiniBand;
  const auto manager = Manager();
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_resolve_route"));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_set_option path to 7"));
  EXPECT_THAT(RouteCalls(*manager, "10.0.0.3:7000"), ElementsAre("rdma_resolve_route"));
}

TEST_F(RdmaCallsTest, APathThatReachedNobodyIsQueriedAgain) {
  port_.link = LinkKind::kInfiniBand;
  const auto manager = Manager();
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_resolve_route"));
  RecordingRdmaCm::Get().SetAnswer(RDMA_CM_EVENT_UNREACHABLE);
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_set_option path to 7"));
  RecordingRdmaCm::Get().SetAnswer(RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_resolve_route"));
}

TEST_F(RdmaCallsTest, ARejectionShowsThatThePathWorks) {
  port_.link = LinkKind::kInfiniBand;
  const auto manager = Manager();
  RecordingRdmaCm::Get().SetAnswer(RDMA_CM_EVENT_REJECTED);
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_resolve_route"));
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_set_option path to 7"));
}

TEST_F(RdmaCallsTest, AKernelThatAcceptsNoPathIsAskedForOne) {
  port_.link = LinkKind::kInfiniBand;
  const auto manager = Manager();
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_resolve_route"));
  RecordingRdmaCm::Get().RefusePaths(EINVAL);
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_set_option path to 7", "rdma_resolve_route"));
}

TEST_F(RdmaCallsTest, AChangeInTheSubnetForgetsAllPaths) {
  port_.link = LinkKind::kInfiniBand;
  const auto manager = Manager();
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_resolve_route"));
  manager->OnPathsChanged();
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_resolve_route"));
}

// There is nobody to be asked: the kernel knows the way from the neighbour's entry.
TEST_F(RdmaCallsTest, RoceHasNoPathsToKeep) {
  const auto manager = Manager();
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_resolve_route"));
  EXPECT_THAT(RouteCalls(*manager), ElementsAre("rdma_resolve_route"));
}

// iWARP's connections inherit it from the socket that listens.
TEST_F(RdmaCallsTest, AListenerHasTheTrafficClassBeforeItListens) {
  port_.traffic_class = 0;
  const auto manager = Manager();
  const auto listener = manager->Listen(loop_, *Address::Parse("10.0.0.1:7000"), [](auto) {});
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_THAT(RecordingRdmaCm::Get().TakeCalls(),
              ElementsAre("rdma_bind_addr", "rdma_set_option tos 0", "rdma_listen"));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
