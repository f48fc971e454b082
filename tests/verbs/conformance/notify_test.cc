// Events of completion queues: arm, then drain, and no completion waits unnoticed; solicited-only;
// overrun.
#include <algorithm>

#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

class NotifyTest : public ConformanceTest {};
TOKAMAK_CONFORMANCE(NotifyTest);

TEST_P(NotifyTest, AnArmedQueueRaisesOneEvent) {
  auto pair = Connect();
  for (uint64_t i = 0; i < 3; ++i) pair->passive.MustPostReceives({{i, {}}});
  pair->passive.Arm(*pair->passive.receives);
  pair->active.Arm(*pair->active.sends);
  pair->active.MustPost({Send(1, {}), Send(2, {}), Send(3, {})});
  EXPECT_TRUE(Drive([&] { return pair->passive.receive_events > 0 && pair->active.send_events > 0; }));
  EXPECT_EQ(pair->passive.AwaitReceives(3).size(), 3u);
  EXPECT_EQ(pair->active.AwaitSends(3).size(), 3u);
  LookOn();
  EXPECT_EQ(pair->passive.receive_events, 1);
  EXPECT_EQ(pair->active.send_events, 1);
  EXPECT_EQ(pair->passive.send_events, 0);
  EXPECT_EQ(pair->active.receive_events, 0);
}

TEST_P(NotifyTest, AQueueThatIsNotArmedRaisesNoEvent) {
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}});
  pair->active.MustPost({Send(1, {})});
  EXPECT_EQ(pair->passive.AwaitReceives(1).size(), 1u);
  EXPECT_EQ(pair->active.AwaitSends(1).size(), 1u);
  LookOn();
  EXPECT_EQ(pair->passive.receive_events, 0);
  EXPECT_EQ(pair->active.send_events, 0);
}

TEST_P(NotifyTest, AQueueMayBeArmedAgainAfterItsEvent) {
  auto pair = Connect();
  for (int i = 1; i <= 5; ++i) {
    pair->passive.MustPostReceives({{1, {}}});
    pair->passive.Arm(*pair->passive.receives);
    pair->active.MustPost({Send(1, {})});
    EXPECT_TRUE(Drive([&] { return pair->passive.receive_events == i; }));
    EXPECT_EQ(pair->passive.AwaitReceives(1).size(), 1u);
    EXPECT_EQ(pair->active.AwaitSends(1).size(), 1u);
  }
}

TEST_P(NotifyTest, TheNextCompletionRaisesTheEventThoughOthersWaitAlready) {
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}, {2, {}}});
  pair->active.MustPost({Send(1, {})});
  EXPECT_EQ(pair->active.AwaitSends(1).size(), 1u);
  LookOn();
  pair->passive.Arm(*pair->passive.receives);
  LookOn();
  const int before = pair->passive.receive_events;
  if (before > 0) pair->passive.Arm(*pair->passive.receives);  // an event for what was there already is tolerated
  pair->active.MustPost({Send(2, {})});
  EXPECT_TRUE(Drive([&] { return pair->passive.receive_events > before; }));
  EXPECT_EQ(pair->passive.AwaitReceives(2).size(), 2u);
}

// Both sides work from events alone: whoever arms first and drains then is woken for everything
// that comes later.
TEST_P(NotifyTest, WhoArmsAndThenDrainsMissesNothing) {
  constexpr uint64_t kTotal = 2000, kWindow = 16;
  PairOptions options;
  options.active.max_send_requests = kWindow;
  options.passive.max_receive_requests = 2 * kWindow;
  auto pair = Connect(options);
  End& sender = pair->active;
  End& receiver = pair->passive;
  uint64_t posted = 0, sent = 0, received = 0;
  for (uint64_t i = 0; i < 2 * kWindow; ++i) receiver.MustPostReceives({{i, {}}});

  const auto send_more = [&] {
    // In bursts of changing size, so that wake-ups meet queues in all states.
    for (uint64_t burst = posted % 5 + 1; burst > 0 && posted < kTotal && posted - sent < kWindow; --burst) {
      sender.MustPost({Send(posted++, {})});
    }
  };
  sender.on_send_event = [&] {
    sender.Arm(*sender.sends);
    sent += PollNow(*sender.sends).size();
    send_more();
  };
  receiver.on_receive_event = [&] {
    receiver.Arm(*receiver.receives);
    for (const Completion& completion : PollNow(*receiver.receives)) {
      EXPECT_THAT(completion, Received(received, 0));
      ++received;
      receiver.MustPostReceives({{received + 2 * kWindow - 1, {}}});
    }
  };
  sender.Arm(*sender.sends);
  receiver.Arm(*receiver.receives);
  send_more();
  EXPECT_TRUE(Drive([&] { return (received == kTotal && sent == kTotal) || HasFailure(); }))
      << posted << " posted, " << sent << " sent, " << received << " received. " << backend().Counters();
}

TEST_P(NotifyTest, ASolicitedOnlyQueueSleepsThroughOtherMessages) {
  TOKAMAK_NEEDS(solicited_events);
  auto pair = Connect();
  for (uint64_t i = 0; i < 3; ++i) pair->passive.MustPostReceives({{i, {}}});
  pair->passive.Arm(*pair->passive.receives, /*solicited_only=*/true);
  pair->active.MustPost({Send(1, {}), Send(2, {})});
  EXPECT_EQ(pair->active.AwaitSends(2).size(), 2u);
  LookOn();
  EXPECT_EQ(pair->passive.receive_events, 0);
  pair->active.MustPost({Send(3, {}).With(kSolicited)});
  EXPECT_TRUE(Drive([&] { return pair->passive.receive_events == 1; }));
  EXPECT_EQ(pair->passive.AwaitReceives(3).size(), 3u);
}

TEST_P(NotifyTest, ASolicitedMessageOfManyPacketsWakesAtItsEnd) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 50000, 1), to(*pair->passive.domain, 50000, 2);
  pair->passive.MustPostReceives({{1, {to.whole()}}});
  pair->passive.Arm(*pair->passive.receives, /*solicited_only=*/true);
  pair->active.MustPost({Send(1, {from.whole()}).With(kSolicited)});
  EXPECT_TRUE(Drive([&] { return pair->passive.receive_events == 1; }));
  EXPECT_THAT(PollNow(*pair->passive.receives), ElementsAre(Received(1, 50000)));
}

TEST_P(NotifyTest, ASolicitedWriteWithImmediateWakes) {
  TOKAMAK_NEEDS(immediate);
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}, {2, {}}});
  pair->passive.Arm(*pair->passive.receives, /*solicited_only=*/true);
  pair->active.MustPost({WriteWithImm(1, {}, 0, 0, 5)});
  EXPECT_EQ(pair->active.AwaitSends(1).size(), 1u);
  LookOn();
  EXPECT_EQ(pair->passive.receive_events, 0);
  pair->active.MustPost({WriteWithImm(2, {}, 0, 0, 6).With(kSolicited)});
  EXPECT_TRUE(Drive([&] { return pair->passive.receive_events == 1; }));
}

TEST_P(NotifyTest, AnErrorWakesASolicitedOnlyQueue) {
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}});
  pair->passive.Arm(*pair->passive.receives, /*solicited_only=*/true);
  EXPECT_TRUE(pair->passive.queue_pair->Modify(QueuePairState::kError).ok());
  EXPECT_TRUE(Drive([&] { return pair->passive.receive_events == 1; }));
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Flushed(1)));
}

TEST_P(NotifyTest, ArmingForAllAfterArmingForSolicitedWakesForAll) {
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}});
  pair->passive.Arm(*pair->passive.receives, /*solicited_only=*/true);
  pair->passive.Arm(*pair->passive.receives, /*solicited_only=*/false);
  pair->active.MustPost({Send(1, {})});
  EXPECT_TRUE(Drive([&] { return pair->passive.receive_events == 1; }));
}

TEST_P(NotifyTest, ACompletionQueueIsAtLeastAsDeepAsAskedFor) {
  for (uint32_t depth : {1u, 5u, 64u, 1000u}) {
    auto queue = backend().device(0).CreateCompletionQueue(backend().loop(0), depth, [] {});
    ASSERT_TRUE(queue.ok()) << queue.status();
    EXPECT_GE((*queue)->depth(), depth);
  }
}

TEST_P(NotifyTest, AnOverrunQueueDiesLoudly) {
  PairOptions options;
  options.passive.receive_completions = 4;
  options.passive.max_receive_requests = 64;
  auto pair = Connect(options);
  const uint32_t depth = pair->passive.receives->depth();
  if (depth >= 60) GTEST_SKIP() << "skipped: device lacks a CompletionQueue::depth of less than 60";
  bool overrun = false;
  auto watch = pair->passive.device.Watch(pair->passive.loop, [&](const DeviceEventInfo& info) {
    overrun = overrun || info.event == DeviceEvent::kCompletionQueueOverrun;
  });
  for (uint64_t i = 0; i < depth + 2; ++i) pair->passive.MustPostReceives({{i, {}}});
  for (uint64_t i = 0; i < depth + 2; ++i) pair->active.MustPost({Send(i, {})});
  EXPECT_TRUE(Drive([&] { return overrun && pair->passive.state() == QueuePairState::kError; }));
  EXPECT_LE(PollNow(*pair->passive.receives).size(), depth);
}

TEST_P(NotifyTest, AFullQueueThatIsPolledInTimeIsNotOverrun) {
  PairOptions options;
  options.passive.receive_completions = 4;
  options.passive.max_receive_requests = 64;
  auto pair = Connect(options);
  const uint32_t depth = pair->passive.receives->depth();
  if (depth > 64) GTEST_SKIP() << "skipped: device lacks a CompletionQueue::depth of 64 or less";
  for (int round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < depth; ++i) pair->passive.MustPostReceives({{i, {}}});
    for (uint64_t i = 0; i < depth; ++i) pair->active.MustPost({Send(i, {})});
    EXPECT_EQ(pair->active.AwaitSends(depth).size(), depth);
    EXPECT_EQ(pair->passive.AwaitReceives(depth).size(), depth);
  }
  EXPECT_EQ(pair->passive.state(), QueuePairState::kReadyToSend);
}

TEST_P(NotifyTest, ASolicitedOnlyQueueSleepsThroughSuccessesOfItsOwnSends) {
  TOKAMAK_NEEDS(solicited_events);
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}});
  pair->active.Arm(*pair->active.sends, /*solicited_only=*/true);
  pair->active.MustPost({Send(1, {}).With(kSolicited), Write(2, {}, 0, 0)});
  EXPECT_EQ(pair->active.AwaitSends(2).size(), 2u);
  LookOn();
  EXPECT_EQ(pair->active.send_events, 0);
}

TEST_P(NotifyTest, ASolicitedSendWithImmediateWakes) {
  TOKAMAK_NEEDS(immediate);
  auto pair = Connect();
  pair->passive.MustPostReceives({{1, {}}});
  pair->passive.Arm(*pair->passive.receives, /*solicited_only=*/true);
  pair->active.MustPost({SendWithImm(1, {}, 5).With(kSolicited)});
  EXPECT_TRUE(Drive([&] { return pair->passive.receive_events == 1; }));
  EXPECT_THAT(PollNow(*pair->passive.receives), ElementsAre(ReceivedImm(1, 0, 5)));
}

TEST_P(NotifyTest, AnOverrunQueueOfSendsDiesLoudly) {
  PairOptions options;
  options.active.send_completions = 4;
  auto pair = Connect(options);
  const uint32_t depth = pair->active.sends->depth();
  if (depth >= 60) GTEST_SKIP() << "skipped: device lacks a CompletionQueue::depth of less than 60";
  bool overrun = false;
  auto watch = pair->active.device.Watch(pair->active.loop, [&](const DeviceEventInfo& info) {
    overrun = overrun || info.event == DeviceEvent::kCompletionQueueOverrun;
  });
  for (uint64_t i = 0; i < depth + 2; ++i) pair->active.MustPost({Write(i, {}, 0, 0)});
  EXPECT_TRUE(Drive([&] { return overrun && pair->active.state() == QueuePairState::kError; }));
  const Completions left = PollNow(*pair->active.sends);
  EXPECT_LE(left.size(), depth);
  for (size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i].id, i);
}

TEST_P(NotifyTest, AnOverrunQueueTakesAllItsQueuePairsAndNoOthers) {
  EndOptions small;
  small.receive_completions = 4;
  End home(backend(), 1, small), active(backend(), 0), second_active(backend(), 0);
  End second(backend(), 1, small, &home);
  const uint32_t depth = home.receives->depth();
  if (depth >= 60) GTEST_SKIP() << "skipped: device lacks a CompletionQueue::depth of less than 60";
  auto bystander = Connect();
  ASSERT_NO_FATAL_FAILURE(Establish(backend(), active, home, ConnectDefaults(), ConnectDefaults()));
  ASSERT_NO_FATAL_FAILURE(Establish(backend(), second_active, second, ConnectDefaults(), ConnectDefaults()));
  for (uint64_t i = 0; i < depth + 2; ++i) home.MustPostReceives({{i, {}}});
  for (uint64_t i = 0; i < depth + 2; ++i) active.MustPost({Send(i, {})});
  EXPECT_TRUE(
      Drive([&] { return home.state() == QueuePairState::kError && second.state() == QueuePairState::kError; }));
  ExpectWorks(bystander->active, bystander->passive);
}

}  // namespace
}  // namespace tokamak::verbs::conformance
