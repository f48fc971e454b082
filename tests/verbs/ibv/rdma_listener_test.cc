// A listener that loses its device, and who has asked it meanwhile.
#include "lib/verbs/ibv/cm/rdma_listener.h"

#include <poll.h>

#include <atomic>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "lib/verbs/ibv/cm/departures.h"
#include "lib/verbs/ibv/cm/rdma_core.h"
#include "tests/verbs/ibv/connections_fixture.h"

namespace tokamak::verbs::ibv {
namespace {

class RdmaListenerTest : public ConnectionsTest {
 protected:
  std::shared_ptr<RdmaCmCore> MakeCore() {
    RdmaCmOptions options;
    options.device = ParseDeviceName(testing_support::TestDevices()[1])->device;
    options.address = devices_[1]->address();
    options.port = [] { return LocalPort(); };
    return std::make_shared<RdmaCmCore>(options, *Departures::Start());
  }
};
INSTANTIATE_TEST_SUITE_P(RealVerbs, RdmaListenerTest, testing::Values(Manager{"rdma", Exchange::kRdmaCm}),
                         [](const auto& test) { return test.param.name; });

// The kernel may deliver a request after it has reported the removal. An id that nobody knows of
// would keep the asker waiting.
TEST_P(RdmaListenerTest, ARequestBehindTheDevicesRemovalIsRejected) {
  Worker door(*devices_[1], "door"), asking(*devices_[0], "ask");
  const std::shared_ptr<RdmaCmCore> core = MakeCore();
  std::unique_ptr<RdmaListener> listener;
  std::shared_ptr<CmChannel> channel;
  std::atomic<bool> presented{false};
  door.CallOn([&] {
    channel = *core->ChannelOf(door.loop());
    auto made = RdmaListener::Listen(core, channel, devices_[1]->address(),
                                     [&](std::unique_ptr<ConnectionRequest>) { presented = true; });
    ASSERT_TRUE(made.ok()) << made.status();
    listener = *std::move(made);
  });
  ASSERT_NE(listener, nullptr);

  End end(asking);
  std::atomic<int> heard{-1};
  door.CallOn([&] {  // whose loop so reads nothing
    asking.CallOn([&] {
      auto made = devices_[0]->connection_manager().Connect(
          *end.queue_pair, listener->address(), Patient(),
          [&](const ConnectionEvent& event) { heard = static_cast<int>(event.kind); });
      ASSERT_TRUE(made.ok()) << made.status();
      end.connection = *std::move(made);
    });
    pollfd readable = {channel->handle()->fd, POLLIN, 0};
    ASSERT_EQ(poll(&readable, 1, static_cast<int>(kPatience.milliseconds())), 1) << "the request";
    CmEvent removal;
    removal.type = RDMA_CM_EVENT_DEVICE_REMOVAL;
    listener->OnCmEvent(removal);
  });
  EXPECT_TRUE(Await([&] { return heard != -1; }));
  EXPECT_EQ(heard, static_cast<int>(Kind::kRejected));
  EXPECT_FALSE(presented);
  door.CallOn([&] {
    listener.reset();
    channel.reset();
  });
}

}  // namespace
}  // namespace tokamak::verbs::ibv
