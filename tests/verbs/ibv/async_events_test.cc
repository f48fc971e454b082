#include "lib/verbs/ibv/async_events.h"

#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

constexpr uint8_t kPort = 2;

std::optional<DeviceEventInfo> OfPort(ibv_event_type type, int port = kPort) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  return ToDeviceEvent(event, kPort);
}

TEST(DeviceEventTest, PortsGoDownAndUp) {
  ASSERT_TRUE(OfPort(IBV_EVENT_PORT_ERR).has_value());
  EXPECT_EQ(OfPort(IBV_EVENT_PORT_ERR)->event, DeviceEvent::kPortDown);
  ASSERT_TRUE(OfPort(IBV_EVENT_PORT_ACTIVE).has_value());
  EXPECT_EQ(OfPort(IBV_EVENT_PORT_ACTIVE)->event, DeviceEvent::kPortUp);
}

TEST(DeviceEventTest, EventsOfAnotherPortAreIgnored) {
  for (ibv_event_type type : {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE}) {
    EXPECT_FALSE(OfPort(type, kPort + 1).has_value()) << type;
  }
}

TEST(DeviceEventTest, AChangeOfGidLidOrPkeyIsReported) {
  for (ibv_event_type type : {IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE}) {
    ASSERT_TRUE(OfPort(type).has_value()) << type;
    EXPECT_EQ(OfPort(type)->event, DeviceEvent::kAddressChanged);
  }
}

TEST(DeviceEventTest, ALostDeviceIsRemovedWhateverThePort) {
  ASSERT_TRUE(OfPort(IBV_EVENT_DEVICE_FATAL, 0).has_value());
  EXPECT_EQ(OfPort(IBV_EVENT_DEVICE_FATAL, 0)->event, DeviceEvent::kRemoved);
}

TEST(DeviceEventTest, ADeadQueuePairIsNamed) {
  ibv_qp queue_pair{};
  queue_pair.qp_num = 77;
  ibv_async_event event{};
  event.element.qp = &queue_pair;
  for (ibv_event_type type : {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR}) {
    event.event_type = type;
    const auto info = ToDeviceEvent(event, kPort);
    ASSERT_TRUE(info.has_value()) << type;
    EXPECT_EQ(info->event, DeviceEvent::kQueuePairFatal);
    EXPECT_EQ(info->queue_pair_number, 77u);
  }
}

TEST(DeviceEventTest, AnOverrunIsReported) {
  ibv_cq queue{};
  ibv_async_event event{};
  event.element.cq = &queue;
  event.event_type = IBV_EVENT_CQ_ERR;
  ASSERT_TRUE(ToDeviceEvent(event, kPort).has_value());
  EXPECT_EQ(ToDeviceEvent(event, kPort)->event, DeviceEvent::kCompletionQueueOverrun);
}

class FakeSharedReceives final : public SharedReceivesTarget {
 public:
  void OnAsyncEvent(ibv_event_type) override {}
  const SharedReceiveQueue* handle() const override { return handle_; }

  const SharedReceiveQueue* handle_ = nullptr;
};

TEST(DeviceEventTest, ALimitNamesTheHandleAndNoneThatIsGone) {
  FakeSharedReceives target;
  ibv_srq queue{};
  queue.srq_context = static_cast<AsyncTarget*>(&target);
  ibv_async_event event{};
  event.element.srq = &queue;
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  EXPECT_FALSE(ToDeviceEvent(event, kPort).has_value());
  target.handle_ = reinterpret_cast<const SharedReceiveQueue*>(&queue);  // only to be compared
  const auto info = ToDeviceEvent(event, kPort);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->event, DeviceEvent::kReceiveLimit);
  EXPECT_EQ(info->shared_receives, target.handle_);
}

TEST(DeviceEventTest, OtherEventsAreIgnored) {
  for (ibv_event_type type : {IBV_EVENT_SM_CHANGE, IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_SQ_DRAINED,
                              IBV_EVENT_PATH_MIG, IBV_EVENT_QP_LAST_WQE_REACHED}) {
    EXPECT_FALSE(OfPort(type).has_value()) << type;
  }
}

}  // namespace
}  // namespace tokamak::verbs::ibv
