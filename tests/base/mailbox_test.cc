#include "lib/base/mailbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "sim/time/sim_loop.h"

namespace tokamak::base {
namespace {

TEST(RingTest, GivesValuesInTheOrderPushed) {
  Ring<int> ring(4);
  int value = 0;
  EXPECT_FALSE(ring.Pop(&value));
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(ring.Push(round * 3 + i));
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(ring.Pop(&value));
      EXPECT_EQ(value, round * 3 + i);
    }
  }
  EXPECT_TRUE(ring.empty());
}

TEST(RingTest, AFullRingLeavesTheValueWithItsSender) {
  Ring<std::unique_ptr<int>> ring(1);
  EXPECT_TRUE(ring.Push(std::make_unique<int>(1)));
  auto kept = std::make_unique<int>(2);
  EXPECT_FALSE(ring.Push(std::move(kept)));
  ASSERT_NE(kept, nullptr);  // NOLINT(bugprone-use-after-move): what is promised
  EXPECT_EQ(*kept, 2);
}

TEST(RingTest, CapacityIsRoundedUpToAPowerOfTwo) {
  EXPECT_EQ(Ring<int>(0).capacity(), 1u);
  EXPECT_EQ(Ring<int>(5).capacity(), 8u);
  EXPECT_EQ(Ring<int>(8).capacity(), 8u);
}

TEST(RingTest, JoinsTwoThreads) {
  constexpr int kValues = 2000;
  Ring<int> ring(16);
  std::thread producer([&] {
    for (int i = 0; i < kValues; ++i) {
      while (!ring.Push(int{i})) std::this_thread::yield();
    }
  });
  for (int i = 0; i < kValues; ++i) {
    int value = -1;
    while (!ring.Pop(&value)) std::this_thread::yield();
    ASSERT_EQ(value, i);
  }
  producer.join();
}

class MailboxTest : public testing::Test {
 protected:
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  std::vector<int> got_;
};

TEST_F(MailboxTest, HandlesAllWaitingValuesInOneTask) {
  Mailbox<int> mailbox(loop_, 8, [this](int value) { got_.push_back(value); });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(mailbox.Send(int{i}));
  EXPECT_TRUE(got_.empty());
  scheduler_.Run();
  EXPECT_EQ(got_, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(scheduler_.tasks_run(), 1u);
}

TEST_F(MailboxTest, TakesNoMoreThanItsCapacity) {
  Mailbox<int> mailbox(loop_, 2, [this](int value) { got_.push_back(value); });
  EXPECT_TRUE(mailbox.Send(1));
  EXPECT_TRUE(mailbox.Send(2));
  EXPECT_FALSE(mailbox.Send(3));
  scheduler_.Run();
  EXPECT_TRUE(mailbox.Send(4));
  scheduler_.Run();
  EXPECT_EQ(got_, (std::vector<int>{1, 2, 4}));
}

TEST_F(MailboxTest, ValuesSentByItsHandlerAreHandledLater) {
  Mailbox<int>* reply = nullptr;
  Mailbox<int> mailbox(loop_, 2, [&](int value) {
    got_.push_back(value);
    if (value == 10) return;
    EXPECT_TRUE(reply->Send(value + 1));
  });
  reply = &mailbox;
  EXPECT_TRUE(mailbox.Send(0));
  scheduler_.Run();
  EXPECT_EQ(got_.size(), 11u);
}

TEST_F(MailboxTest, TheHandlerMayDropItsMailbox) {
  std::unique_ptr<Mailbox<int>> mailbox;
  auto held = std::make_shared<int>(1);
  mailbox = std::make_unique<Mailbox<int>>(loop_, 4, [&, held](int value) {
    mailbox.reset();
    got_.push_back(value + *held);  // its captures live until it returns
  });
  EXPECT_TRUE(mailbox->Send(1));
  EXPECT_TRUE(mailbox->Send(2));
  scheduler_.Run();
  EXPECT_EQ(got_, (std::vector<int>{2}));
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(MailboxTest, DroppingAMailboxDiscardsWaitingValues) {
  auto held = std::make_shared<int>(1);
  auto mailbox = std::make_unique<Mailbox<std::shared_ptr<int>>>(loop_, 2, [](std::shared_ptr<int>) { FAIL(); });
  EXPECT_TRUE(mailbox->Send(std::shared_ptr<int>(held)));
  mailbox.reset();
  scheduler_.Run();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace tokamak::base
