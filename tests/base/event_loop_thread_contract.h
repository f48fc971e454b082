// Promises of an EventLoop to other threads: each raise comes through, however it meets the loop,
// and shows writes before it. For real loops, instantiated as event_loop_contract.h.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/base/event_loop_contract.h"

namespace tokamak::base {

class EventLoopThreadContract : public EventLoopContract {};

TEST_P(EventLoopThreadContract, ARaiseByAnotherThreadShowsWhatItWrote) {
  int written = 0;
  const std::unique_ptr<Signal> signal = loop_.MakeSignal([&] { ran_.push_back(written); });
  std::thread other([&] {
    written = 42;
    signal->Raise();
  });
  RunUntilRan(1);
  other.join();
  EXPECT_EQ(ran_, (Order{42}));
}

TEST_P(EventLoopThreadContract, NoRaiseByAnotherThreadIsLost) {
  constexpr int kRounds = 50;
  std::atomic<int> answered{0};
  std::atomic<int> asked{0};
  const std::unique_ptr<Signal> signal = loop_.MakeSignal([&] { answered = asked.load(); });
  std::thread other([&] {
    for (int i = 1; i <= kRounds; ++i) {
      asked = i;
      signal->Raise();
      while (answered < i) std::this_thread::yield();  // so that the loop gets to its sleep between raises
    }
  });
  EXPECT_TRUE(harness_->RunUntil([&] { return answered == kRounds; }));
  other.join();
}

TEST_P(EventLoopThreadContract, ManyThreadsRaiseManySignals) {
  constexpr int kThreads = 4;
  constexpr int kRaises = 1000;
  struct Source {
    std::atomic<int> raised{0};
    int seen = 0;
    std::unique_ptr<Signal> signal;
  };
  std::vector<std::unique_ptr<Source>> sources;
  for (int i = 0; i < kThreads; ++i) {
    sources.push_back(std::make_unique<Source>());
    Source* source = sources.back().get();
    source->signal = loop_.MakeSignal([source] { source->seen = source->raised; });
  }
  std::vector<std::thread> threads;
  for (const auto& source : sources) {
    threads.emplace_back([source = source.get()] {
      for (int i = 0; i < kRaises; ++i) {
        ++source->raised;
        source->signal->Raise();
      }
    });
  }
  EXPECT_TRUE(harness_->RunUntil([&] {
    for (const auto& source : sources) {
      if (source->seen != kRaises) return false;
    }
    return true;
  }));
  for (std::thread& thread : threads) thread.join();
}

TEST_P(EventLoopThreadContract, AMailboxJoinsTwoThreads) {
  constexpr int kValues = 500;
  Mailbox<int> mailbox(loop_, 8, [this](int value) { ran_.push_back(value); });
  std::thread other([&] {
    for (int i = 0; i < kValues; ++i) {
      while (!mailbox.Send(int{i})) std::this_thread::yield();
    }
  });
  RunUntilRan(kValues);
  other.join();
  for (int i = 0; i < kValues; ++i) ASSERT_EQ(ran_[static_cast<size_t>(i)], i);
}

}  // namespace tokamak::base
