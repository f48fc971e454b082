// Promises of every EventLoop about signals, and so about the mailboxes on top: a part of
// event_loop_contract.h, which includes it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/base/mailbox.h"
#include "tests/base/event_loop_fixture.h"

namespace tokamak::base {

TEST_P(EventLoopContract, ASignalRunsAfterARaise) {
  const std::unique_ptr<Signal> signal = loop_.MakeSignal(Note(1));
  RunPosted();
  EXPECT_EQ(ran_, (Order{}));
  signal->Raise();
  RunUntilRan(1);
  RunFor(Microseconds(100));
  EXPECT_EQ(ran_, (Order{1}));
}

TEST_P(EventLoopContract, RaisesBeforeTheRunAreAnsweredByOne) {
  const std::unique_ptr<Signal> signal = loop_.MakeSignal(Note(1));
  for (int i = 0; i < 10; ++i) signal->Raise();
  RunUntilRan(1);
  RunFor(Microseconds(100));
  EXPECT_EQ(ran_, (Order{1}));
}

TEST_P(EventLoopContract, ARaiseDuringTheRunIsFollowedByAnother) {
  std::unique_ptr<Signal> signal;
  signal = loop_.MakeSignal([&] {
    ran_.push_back(static_cast<int>(ran_.size()));
    if (ran_.size() < 3) signal->Raise();
    if (ran_.size() < 3) signal->Raise();
  });
  signal->Raise();
  RunUntilRan(3);
  RunFor(Microseconds(100));
  EXPECT_EQ(ran_, (Order{0, 1, 2}));
}

TEST_P(EventLoopContract, SignalsRunInTheOrderRaised) {
  std::vector<std::unique_ptr<Signal>> signals;
  for (int i = 0; i < 4; ++i) signals.push_back(loop_.MakeSignal(Note(i)));
  for (const int i : {2, 0, 3, 1}) signals[static_cast<size_t>(i)]->Raise();
  RunUntilRan(4);
  EXPECT_EQ(ran_, (Order{2, 0, 3, 1}));
}

TEST_P(EventLoopContract, ASignalCanBeRaisedInATask) {
  const std::unique_ptr<Signal> signal = loop_.MakeSignal(Note(2));
  timers_[0] = loop_.Post([&] {
    signal->Raise();
    ran_.push_back(1);
  });
  RunUntilRan(2);
  EXPECT_EQ(ran_, (Order{1, 2}));
}

TEST_P(EventLoopContract, DroppingARaisedSignalCancels) {
  std::unique_ptr<Signal> signal = loop_.MakeSignal(Note(0));
  const std::unique_ptr<Signal> other = loop_.MakeSignal(Note(1));
  signal->Raise();
  other->Raise();
  signal.reset();
  RunUntilRan(1);
  RunFor(Microseconds(100));
  EXPECT_EQ(ran_, (Order{1}));
}

TEST_P(EventLoopContract, ASignalCanDropAnotherThatIsRaisedToo) {
  std::unique_ptr<Signal> second;
  const std::unique_ptr<Signal> first = loop_.MakeSignal([&] {
    second.reset();
    ran_.push_back(1);
  });
  second = loop_.MakeSignal(Note(2));
  first->Raise();
  second->Raise();
  RunUntilRan(1);
  RunFor(Microseconds(100));
  EXPECT_EQ(ran_, (Order{1}));
}

TEST_P(EventLoopContract, ASignalMayDropItselfWhileItRuns) {
  for (const bool raise_again : {false, true}) {
    std::unique_ptr<Signal> signal;
    auto held = std::make_shared<int>(5);
    signal = loop_.MakeSignal([this, raise_again, held, &signal] {
      if (raise_again) signal->Raise();
      signal.reset();
      ran_.push_back(*held);  // its captures live until it returns
    });
    signal->Raise();
    RunUntilRan(raise_again ? 2 : 1);
    RunFor(Microseconds(100));
    EXPECT_EQ(held.use_count(), 1);
  }
  EXPECT_EQ(ran_, (Order{5, 5}));
}

TEST_P(EventLoopContract, DroppingASignalDestroysItsTask) {
  auto held = std::make_shared<int>(1);
  std::unique_ptr<Signal> signal = loop_.MakeSignal([held] {});
  signal->Raise();
  signal.reset();
  EXPECT_EQ(held.use_count(), 1);
  RunPosted();
}

TEST_P(EventLoopContract, AMailboxHandsItsValuesOverInOrder) {
  Mailbox<int> mailbox(loop_, 4, [this](int value) { ran_.push_back(value); });
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(mailbox.Send(int{i}));
  EXPECT_FALSE(mailbox.Send(4));
  RunUntilRan(4);
  EXPECT_TRUE(mailbox.Send(5));
  RunUntilRan(5);
  EXPECT_EQ(ran_, (Order{0, 1, 2, 3, 5}));
}

}  // namespace tokamak::base
