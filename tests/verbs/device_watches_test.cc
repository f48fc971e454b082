// Who hears of a device's events, where, and how often.
#include "lib/verbs/device_watches.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/loop_thread.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr DeviceEventInfo Up() { return {DeviceEvent::kPortUp, 0, nullptr}; }
constexpr DeviceEventInfo Down() { return {DeviceEvent::kPortDown, 0, nullptr}; }
constexpr DeviceEventInfo Fatal(uint32_t number) { return {DeviceEvent::kQueuePairFatal, number, nullptr}; }

class DeviceWatchesTest : public testing::Test {
 protected:
  // A watch and the events it received.
  struct Listener {
    std::vector<DeviceEvent> events;
    std::vector<uint32_t> numbers;
    std::function<void(const DeviceEventInfo&)> then;
    std::unique_ptr<DeviceWatch> watch;
  };

  std::unique_ptr<Listener> Listen(sim::SimLoop& loop) {
    auto listener = std::make_unique<Listener>();
    listener->watch = watches_->Add(watches_, loop, [heard = listener.get()](const DeviceEventInfo& info) {
      heard->events.push_back(info.event);
      heard->numbers.push_back(info.queue_pair_number);
      if (heard->then) heard->then(info);
    });
    return listener;
  }
  DeviceEventInfo Limit(size_t queue) const {
    return {DeviceEvent::kReceiveLimit, 0, reinterpret_cast<const SharedReceiveQueue*>(&handles_[queue])};
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_}, other_loop_{scheduler_};
  std::shared_ptr<DeviceWatches> watches_ = std::make_shared<DeviceWatches>();
  const char handles_[2] = {};  // only to be compared
};

TEST_F(DeviceWatchesTest, EachWatchHearsEachEventInOrderInATask) {
  auto one = Listen(loop_), other = Listen(other_loop_);
  for (const DeviceEventInfo& event : {Down(), Up(), Fatal(7)}) watches_->Tell(event);
  EXPECT_THAT(one->events, IsEmpty()) << "not inside the call";
  scheduler_.Run();
  for (const auto& listener : {one.get(), other.get()}) {
    EXPECT_THAT(listener->events,
                ElementsAre(DeviceEvent::kPortDown, DeviceEvent::kPortUp, DeviceEvent::kQueuePairFatal));
    EXPECT_THAT(listener->numbers, ElementsAre(0, 0, 7));
  }
}

TEST_F(DeviceWatchesTest, TwiceTheSameInARowIsOne) {
  auto listener = Listen(loop_);
  for (const DeviceEventInfo& event : {Down(), Down(), Up(), Down(), Fatal(1), Fatal(2), Limit(0), Limit(1)}) {
    watches_->Tell(event);
  }
  scheduler_.Run();
  EXPECT_THAT(listener->events, ElementsAre(DeviceEvent::kPortDown, DeviceEvent::kPortUp, DeviceEvent::kPortDown,
                                            DeviceEvent::kQueuePairFatal, DeviceEvent::kQueuePairFatal,
                                            DeviceEvent::kReceiveLimit, DeviceEvent::kReceiveLimit));
  watches_->Tell(Limit(1));
  scheduler_.Run();
  EXPECT_THAT(listener->events, SizeIs(8)) << "the one before was heard already";
}

TEST_F(DeviceWatchesTest, WhatOneDoesNotListenToIsBounded) {
  auto listener = Listen(loop_);
  for (uint32_t i = 0; i < DeviceWatches::kMaxWaiting + 5; ++i) watches_->Tell(Fatal(i));
  scheduler_.Run();
  ASSERT_THAT(listener->numbers, SizeIs(DeviceWatches::kMaxWaiting));
  EXPECT_EQ(listener->numbers.back(), DeviceWatches::kMaxWaiting - 1);
  watches_->Tell(Up());
  scheduler_.Run();
  EXPECT_EQ(listener->events.back(), DeviceEvent::kPortUp);
}

TEST_F(DeviceWatchesTest, WhatWasDroppedHearsNothing) {
  auto listener = Listen(loop_), other = Listen(loop_);
  watches_->Tell(Down());
  listener->watch.reset();
  watches_->Tell(Up());
  scheduler_.Run();
  EXPECT_THAT(listener->events, IsEmpty());
  EXPECT_THAT(other->events, SizeIs(2));
}

TEST_F(DeviceWatchesTest, AHandlerMayDropItsWatch) {
  auto listener = Listen(loop_);
  listener->then = [&](const DeviceEventInfo&) { listener->watch.reset(); };
  watches_->Tell(Down());
  watches_->Tell(Up());
  scheduler_.Run();
  EXPECT_THAT(listener->events, ElementsAre(DeviceEvent::kPortDown));
}

TEST_F(DeviceWatchesTest, TheLastWatchMayBeTheLastThatKeepsTheDevice) {
  auto listener = Listen(loop_);
  listener->then = [&](const DeviceEventInfo&) { listener->watch.reset(); };
  watches_->Tell(Down());
  const std::weak_ptr<DeviceWatches> device = watches_;
  watches_.reset();
  EXPECT_FALSE(device.expired());
  scheduler_.Run();
  EXPECT_TRUE(device.expired());
}

TEST_F(DeviceWatchesTest, WhatAHandlerCausesComesInALaterTask) {
  auto listener = Listen(loop_);
  bool inside = false;
  listener->then = [&](const DeviceEventInfo&) {
    ASSERT_FALSE(inside);
    inside = true;
    if (listener->events.size() < 3) watches_->Tell(listener->events.size() % 2 == 0 ? Down() : Up());
    inside = false;
  };
  watches_->Tell(Down());
  EXPECT_TRUE(scheduler_.Step());
  EXPECT_THAT(listener->events, SizeIs(1));
  scheduler_.Run();
  EXPECT_THAT(listener->events, SizeIs(3));
}

TEST_F(DeviceWatchesTest, NobodyHearsOfAHandleThatIsForgotten) {
  auto listener = Listen(loop_);
  for (const DeviceEventInfo& event : {Limit(0), Up(), Limit(1)}) watches_->Tell(event);
  watches_->Forget(Limit(0).shared_receives);
  scheduler_.Run();
  EXPECT_THAT(listener->events, ElementsAre(DeviceEvent::kPortUp, DeviceEvent::kReceiveLimit));
}

TEST_F(DeviceWatchesTest, WhatTheHandlerForgetsItDoesNotHearOf) {
  auto listener = Listen(loop_);
  listener->then = [&](const DeviceEventInfo&) { watches_->Forget(Limit(1).shared_receives); };
  for (const DeviceEventInfo& event : {Limit(0), Limit(1), Up()}) watches_->Tell(event);
  scheduler_.Run();
  EXPECT_THAT(listener->events, ElementsAre(DeviceEvent::kReceiveLimit, DeviceEvent::kPortUp));
}

// One thread tells while another makes and drops watches on its loop; a last watch hears the last
// word.
class DeviceWatchesThreadsTest : public testing::Test {
 protected:
  ~DeviceWatchesThreadsTest() override {
    owner_.CallOn([this] { watch_.reset(); });
  }

  // Whether a watch heard of `event`, which ends it, in time.
  bool Hears(DeviceEvent event) {
    std::promise<void> heard;
    owner_.CallOn([&] {
      watch_ = watches_->Add(watches_, owner_.loop(), [&](const DeviceEventInfo& info) {
        if (info.event != event) return;
        watch_.reset();
        heard.set_value();
      });
    });
    if (event == DeviceEvent::kRemoved) watches_->Tell({event, 0, nullptr});
    const bool in_time = heard.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready;
    owner_.CallOn([this] { watch_.reset(); });  // and the handler has returned
    return in_time;
  }

  const std::shared_ptr<DeviceWatches> watches_ = std::make_shared<DeviceWatches>();
  os::LoopThread owner_{{"owner"}};
  std::unique_ptr<DeviceWatch> watch_;  // the owner's thread's
};

TEST_F(DeviceWatchesThreadsTest, WatchesComeAndGoWhileTheDeviceTells) {
  std::atomic<bool> over{false};
  std::thread device([&] {
    for (uint32_t i = 0; !over; ++i) watches_->Tell(Fatal(i));
  });
  int heard = 0;
  while (heard < 200 && Hears(DeviceEvent::kQueuePairFatal)) ++heard;
  over = true;
  device.join();
  EXPECT_EQ(heard, 200);
  EXPECT_TRUE(Hears(DeviceEvent::kRemoved));
}

}  // namespace
}  // namespace tokamak::verbs
