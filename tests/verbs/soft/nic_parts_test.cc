// The small parts of the NIC that keep promises of their own: keys, numbers, queues of answers,
// windows, delays.
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/soft/rc/psn.h"
#include "lib/verbs/soft/rc/response_queue.h"
#include "lib/verbs/soft/state/memory.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "lib/verbs/soft/state/outbox.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(PsnTest, AWireNumberNamesTheNearestSequence) {
  const uint64_t here = FirstSequence(5);
  EXPECT_EQ(ExtendPsn(5, here), here);
  EXPECT_EQ(ExtendPsn(6, here), here + 1);
  EXPECT_EQ(ExtendPsn(0xffffff, here), here - 6);
  EXPECT_EQ(ExtendPsn(5 + 0x7fffff, here), here + 0x7fffff);
  EXPECT_EQ(ExtendPsn(5 + 0x800000, here), here - 0x800000);
  const uint64_t wrapped = here + (uint64_t{3} << 24);
  EXPECT_EQ(ExtendPsn(ToPsn(wrapped + 100), wrapped), wrapped + 100);
}

TEST(PsnTest, AnEmptyMessageTakesOnePacket) {
  EXPECT_EQ(PacketsFor(0, 256), 1u);
  EXPECT_EQ(PacketsFor(256, 256), 1u);
  EXPECT_EQ(PacketsFor(257, 256), 2u);
  EXPECT_EQ(PacketsFor(uint64_t{1} << 31, 256), uint64_t{1} << 23);
}

TEST(TimeCodesTest, DelaysAreRoundedUpInTheirTables) {
  EXPECT_EQ(AckTimeoutCode(base::Nanoseconds(1)), 1);
  EXPECT_EQ(AckTimeoutCode(AckTimeout(14)), 14);
  EXPECT_EQ(AckTimeoutCode(AckTimeout(14) + base::Nanoseconds(1)), 15);
  EXPECT_EQ(AckTimeoutCode(base::Seconds(1000000)), 31);
  EXPECT_EQ(NotReadyCode(base::Microseconds(640)), 12);
  EXPECT_EQ(NotReadyCode(base::Microseconds(641)), 13);
  EXPECT_EQ(NotReadyCode(base::Milliseconds(600)), 0);
  EXPECT_EQ(NotReadyDelay(0), base::Microseconds(655360));
  for (uint8_t code = 1; code < 32; ++code) EXPECT_EQ(NotReadyCode(NotReadyDelay(code)), code);
}

class KeyTableTest : public ::testing::Test {
 protected:
  KeyTable keys_{SecretNumbers(1, 1)};
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(1000);
};

TEST_F(KeyTableTest, AKeyOpensItsRegionUpToTheLastByte) {
  const uint32_t key = keys_.Add(1, RegionMemory(absl::MakeSpan(memory_)), kLocalWrite | kRemoteWrite);
  const auto begin = reinterpret_cast<uint64_t>(memory_.data());
  EXPECT_EQ(keys_.Remote({1, 5}, key, begin + 990, 10, kRemoteWrite), memory_.data() + 990);
  EXPECT_EQ(keys_.Remote({1, 5}, key, begin + 991, 10, kRemoteWrite), nullptr);
  EXPECT_EQ(keys_.Remote({1, 5}, key, begin, 10, kRemoteRead), nullptr);
  EXPECT_EQ(keys_.Remote({2, 5}, key, begin, 10, kRemoteWrite), nullptr);
  EXPECT_TRUE(keys_.LocalAllows(1, {memory_.data(), 1000, key}, true));
  EXPECT_FALSE(keys_.LocalAllows(1, {memory_.data() + 1, 1000, key}, false));
}

TEST_F(KeyTableTest, ARevokedKeyOpensNothingForALongTime) {
  std::vector<uint32_t> old;
  for (int i = 0; i < 2000; ++i) {
    const uint32_t key = keys_.Add(1, RegionMemory(absl::MakeSpan(memory_)), kLocalRead);
    for (uint32_t revoked : old) {
      ASSERT_NE(revoked, key);
      ASSERT_FALSE(keys_.LocalAllows(1, {memory_.data(), 1, revoked}, false));
    }
    keys_.Remove(key);
    old.push_back(key);
  }
  EXPECT_EQ(keys_.regions(), 0u);
}

class ResponseQueueTest : public ::testing::Test {
 protected:
  ResponseQueueTest() { queue_.Reserve(10); }
  static Response Of(uint64_t first, uint64_t end) {
    Response response;
    response.first = response.position = response.base = first;
    response.end = end;
    return response;
  }
  // The packets that are still to be sent.
  std::vector<std::pair<uint64_t, uint64_t>> Drain() {
    std::vector<std::pair<uint64_t, uint64_t>> left;
    for (; !queue_.empty(); queue_.PopFront()) left.emplace_back(queue_.front().position, queue_.front().end);
    return left;
  }
  ResponseQueue queue_;
};

TEST_F(ResponseQueueTest, AReplayComesBeforeYoungerAnswers) {
  ASSERT_TRUE(queue_.Append(Of(20, 30)));
  ASSERT_TRUE(queue_.Replay(Of(10, 15)));
  EXPECT_EQ(queue_.fresh(), 1u);
  EXPECT_THAT(Drain(), ElementsAre(Pair(10, 15), Pair(20, 30)));
  EXPECT_EQ(queue_.fresh(), 0u);
}

TEST_F(ResponseQueueTest, AReplayReplacesTheAnswersThatItCovers) {
  ASSERT_TRUE(queue_.Append(Of(10, 20)));
  queue_.front().position = 13;
  ASSERT_TRUE(queue_.Append(Of(20, 30)));
  ASSERT_TRUE(queue_.Replay(Of(15, 25)));
  EXPECT_THAT(Drain(), ElementsAre(Pair(13, 15), Pair(15, 25), Pair(25, 30)));
}

TEST_F(ResponseQueueTest, AReplayInsideCutsInTwo) {
  ASSERT_TRUE(queue_.Append(Of(10, 20)));
  ASSERT_TRUE(queue_.Replay(Of(12, 14)));
  EXPECT_THAT(Drain(), ElementsAre(Pair(10, 12), Pair(12, 14), Pair(14, 20)));
}

TEST_F(ResponseQueueTest, AReplayOfSentAnswersLeavesTheRest) {
  ASSERT_TRUE(queue_.Append(Of(10, 20)));
  queue_.front().position = 18;
  ASSERT_TRUE(queue_.Replay(Of(12, 14)));
  EXPECT_THAT(Drain(), ElementsAre(Pair(12, 14), Pair(18, 20)));
}

TEST_F(ResponseQueueTest, TheQueueIsBounded) {
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(queue_.Append(Of(10 * i, 10 * i + 10)));
  EXPECT_FALSE(queue_.Append(Of(100, 110)));
  EXPECT_FALSE(queue_.Replay(Of(5, 6)));
  EXPECT_EQ(Drain().size(), 10u);
}

// Whatever is asked again in whatever order: each packet is in the queue at most once, in order,
// and no packet that was waiting is forgotten.
TEST_F(ResponseQueueTest, NothingIsForgottenAndNothingIsThereTwice) {
  base::Random random(3);
  for (int round = 0; round < 2000; ++round) {
    ResponseQueue queue;
    queue.Reserve(20);
    std::vector<bool> wanted(200);
    uint64_t next = 0;
    for (int step = 0; step < 12; ++step) {
      const bool append = next == 0 || random.Chance(0.4);
      const uint64_t first = append ? next : random.Below(next);
      const uint64_t end = first + 1 + random.Below(append ? 15 : next - first);
      const Response response = Of(first, end);
      if (append ? !queue.Append(response) : !queue.Replay(response)) continue;
      for (uint64_t i = first; i < end; ++i) wanted[i] = true;
      if (append) next = end;
      for (uint64_t go = random.Below(10); go > 0 && !queue.empty(); --go) {
        wanted[queue.front().position++] = false;
        if (queue.front().position == queue.front().end) queue.PopFront();
      }
    }
    uint64_t at = 0;
    for (; !queue.empty(); queue.PopFront()) {
      ASSERT_LT(queue.front().position, queue.front().end);
      ASSERT_LE(queue.front().first, queue.front().position);
      ASSERT_GE(queue.front().position, at);
      for (; at < queue.front().position; ++at) ASSERT_FALSE(wanted[at]);
      for (; at < queue.front().end; ++at) ASSERT_TRUE(wanted[at]);
    }
    for (; at < wanted.size(); ++at) ASSERT_FALSE(wanted[at]);
  }
}

TEST(CongestionTest, AFixedWindowNeverChanges) {
  auto window = MakeFixedWindow(100);
  window->OnAck(1000);
  window->OnLoss(Loss::kTimeout);
  EXPECT_EQ(window->Window(), 100u);
}

TEST(CongestionTest, AnAdditiveWindowDoublesEachRoundTripUntilItsFirstLoss) {
  auto window = MakeAdditiveWindow(1000);
  EXPECT_EQ(window->Window(), 32u);
  window->OnAck(32);
  EXPECT_EQ(window->Window(), 64u);
  window->OnLoss(Loss::kGap);
  EXPECT_EQ(window->Window(), 32u);
  window->OnAck(32);
  EXPECT_EQ(window->Window(), 33u) << "then by one";
}

TEST(CongestionTest, AnAdditiveWindowBeginsAnewAfterATimeOutAndStaysBelowItsMaximum) {
  auto window = MakeAdditiveWindow(40);
  window->OnAck(1000);
  EXPECT_EQ(window->Window(), 40u);
  window->OnLoss(Loss::kTimeout);
  EXPECT_EQ(window->Window(), 4u);
  for (int i = 0; i < 10; ++i) window->OnLoss(Loss::kTimeout);
  EXPECT_EQ(window->Window(), 4u);
  for (int i = 0; i < 1000; ++i) window->OnAck(window->Window());
  EXPECT_EQ(window->Window(), 40u);
}

TEST(CongestionTest, AnAnswerIsOverdueAfterTheMeasuredRoundTripsAndAPause) {
  auto window = MakeAdditiveWindow(1000);
  EXPECT_EQ(window->Overdue(), std::nullopt);
  window->OnRoundTrip(base::Milliseconds(10));
  EXPECT_EQ(window->Overdue(), base::Milliseconds(10 + 4 * 5 + 1));
  for (int i = 0; i < 100; ++i) window->OnRoundTrip(base::Milliseconds(10));
  EXPECT_LT(*window->Overdue(), base::Milliseconds(22)) << "twice, once it is steady";
  window->OnRoundTrip(base::Milliseconds(100));
  EXPECT_GT(*window->Overdue(), base::Milliseconds(100));
}

TEST(CongestionTest, AfterAnOverdueAnswerTheWindowGrowsBackToItsFormerSize) {
  auto window = MakeAdditiveWindow(1000);
  window->OnAck(32);
  window->OnLoss(Loss::kGap);
  window->OnAck(32);
  EXPECT_EQ(window->Window(), 33u);
  for (int i = 0; i < 3; ++i) window->OnLoss(Loss::kOverdue);
  EXPECT_EQ(window->Window(), 4u);
  window->OnAck(4);
  EXPECT_EQ(window->Window(), 8u);
  window->OnAck(100);
  EXPECT_EQ(window->Window(), 33u);
}

TEST(CongestionTest, ANewConnectionForgetsWhatTheLastOneLearned) {
  auto window = MakeAdditiveWindow(1000);
  window->OnRoundTrip(base::Milliseconds(10));
  window->OnLoss(Loss::kTimeout);
  window->Reset();
  EXPECT_EQ(window->Window(), 32u);
  EXPECT_EQ(window->Overdue(), std::nullopt);
  window->OnAck(32);
  EXPECT_EQ(window->Window(), 64u) << "it doubles again";
}

TEST(ReadBudgetTest, AQuarterIsKeptForQueuePairsWithNothingOutstanding) {
  ReadBudget reads;
  reads.set_window(100);
  EXPECT_TRUE(reads.Take(50, true));
  EXPECT_TRUE(reads.Take(25, false));
  EXPECT_FALSE(reads.Take(1, false));
  EXPECT_FALSE(reads.Take(26, true));
  EXPECT_TRUE(reads.Take(25, true));
  EXPECT_FALSE(reads.Take(1, true));
  reads.GiveBack(50);
  EXPECT_TRUE(reads.Take(25, false));
}

TEST(ReadBudgetTest, AReadLargerThanTheWindowGoesAlone) {
  ReadBudget reads;
  reads.set_window(100);
  EXPECT_TRUE(reads.Take(500, false));
  EXPECT_FALSE(reads.Take(1, true));
  reads.GiveBack(500);
  EXPECT_TRUE(reads.Take(1, false));
}

TEST(ReadBudgetTest, ARefusalEndsTheRoomOfItsKindUntilSomeIsReturned) {
  ReadBudget reads;
  reads.set_window(100);
  EXPECT_TRUE(reads.Take(75, true));
  EXPECT_TRUE(reads.room(false));
  EXPECT_FALSE(reads.Take(20, false));
  EXPECT_FALSE(reads.room(false));
  EXPECT_TRUE(reads.room(true)) << "a quarter is kept for these";
  EXPECT_FALSE(reads.Take(26, true));
  EXPECT_FALSE(reads.room(true));
  reads.GiveBack(0);
  EXPECT_FALSE(reads.room(true)) << "nothing was given back";
  reads.GiveBack(1);
  EXPECT_TRUE(reads.room(true));
  EXPECT_TRUE(reads.room(false));
}

TEST(OutboxTest, PacketsAreTakenOutByOwnerAndByKey) {
  Outbox outbox;
  for (uint32_t i = 0; i < 6; ++i) {
    outbox.Add(i % 2).psn = i;
    outbox.Uses(7);
    if (i == 2) outbox.Uses(100);
  }
  outbox.Add(0).psn = 6;
  EXPECT_EQ(outbox.DropOwner(1), 3u);
  EXPECT_EQ(outbox.CountOf(1), 0u);
  EXPECT_GT(outbox.CountOf(0), 0u);
  EXPECT_EQ(outbox.DropKey(100), 1u);
  ASSERT_EQ(outbox.size(), 3u);
  EXPECT_EQ(outbox.waiting()[0].psn, 0u);
  EXPECT_EQ(outbox.waiting()[1].psn, 4u);
  EXPECT_EQ(outbox.DropKey(7), 2u);
  EXPECT_EQ(outbox.waiting()[0].psn, 6u) << "it needed no key";
}

}  // namespace
}  // namespace tokamak::verbs::soft
