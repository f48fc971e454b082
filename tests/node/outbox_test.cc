#include "lib/node/engines/outbox.h"

#include <vector>

#include "gtest/gtest.h"
#include "sim/time/sim_loop.h"

namespace tokamak::node {
namespace {

class OutboxTest : public testing::Test {
 protected:
  sim::Scheduler scheduler_;
  sim::SimLoop sender_{scheduler_};
  sim::SimLoop receiver_{scheduler_};
  std::vector<int> received_;
  base::Mailbox<int> mailbox_{receiver_, 4, [this](int value) { received_.push_back(value); }};
  Outbox<int> outbox_{sender_, mailbox_};
};

TEST_F(OutboxTest, AValueThatFitsGoesAtOnce) {
  for (int i = 0; i < 4; ++i) outbox_.Send(i);
  EXPECT_EQ(outbox_.waiting(), 0u);
}

TEST_F(OutboxTest, ValuesThatDoNotFitComeLaterInOrder) {
  for (int i = 0; i < 100; ++i) outbox_.Send(i);
  EXPECT_EQ(outbox_.waiting(), 96u);
  scheduler_.RunFor(base::Microseconds(200));
  outbox_.Send(100);
  scheduler_.RunFor(base::Milliseconds(10));
  ASSERT_EQ(received_.size(), 101u);
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(received_[static_cast<size_t>(i)], i);
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(OutboxTest, ALongBusyReceiverGetsEverythingAfterwards) {
  const base::Timer busy = receiver_.Post([this] { receiver_.Spend(base::Milliseconds(50)); });
  scheduler_.RunFor(base::Microseconds(1));
  for (int i = 0; i < 20; ++i) outbox_.Send(i);
  scheduler_.RunFor(base::Milliseconds(40));
  EXPECT_TRUE(received_.empty());
  scheduler_.RunFor(base::Milliseconds(40));
  EXPECT_EQ(received_.size(), 20u);
}

TEST_F(OutboxTest, WaitingValuesCanBeTaken) {
  for (int i = 0; i < 7; ++i) outbox_.Send(i);
  EXPECT_EQ(outbox_.TakeWaiting(), (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(outbox_.waiting(), 0u);
}

}  // namespace
}  // namespace tokamak::node
