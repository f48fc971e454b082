#include "lib/verbs/kernel/event_takers.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "gtest/gtest.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr int kChannel = 7, kOther = 8;
constexpr std::chrono::milliseconds kLong(600'000), kShort(1);  // the first is never waited for

// A thread that got an event of kChannel, and comes back when it is let.
class Taker final {
 public:
  explicit Taker(EventTakers& takers) : takers_(takers), thread_([this] { Run(); }) { told_.get_future().wait(); }
  ~Taker() {
    if (!let_) Let();
    thread_.join();
  }
  void Let() {
    let_ = true;
    go_.set_value();
  }
  bool asks() const { return asks_; }

 private:
  void Run() {
    takers_.IsTold(kChannel);
    told_.set_value();
    go_.get_future().wait();
    asks_ = true;
    takers_.Asks(kChannel);
  }

  EventTakers& takers_;
  bool let_ = false;
  std::promise<void> told_, go_;
  std::atomic<bool> asks_{false};
  std::thread thread_;
};

TEST(EventTakersTest, AThreadWithAnEventIsAwaitedUntilItAsksAgain) {
  EventTakers takers(kLong);
  Taker taker(takers);
  taker.Let();
  takers.AwaitOthers(kChannel);
  EXPECT_TRUE(taker.asks());
}

TEST(EventTakersTest, ThreadsOfAnotherChannelAreNotAwaited) {
  EventTakers takers(kLong);
  const Taker taker(takers);
  takers.AwaitOthers(kOther);
  EXPECT_FALSE(taker.asks());
}

TEST(EventTakersTest, AProgramOfOneThreadDoesNotWaitForItself) {
  EventTakers takers(kLong);
  takers.AwaitOthers(kChannel);
  takers.IsTold(kChannel);
  takers.AwaitOthers(kChannel);
}

TEST(EventTakersTest, AnEndedThreadIsNotAwaited) {
  EventTakers takers(kLong);
  std::thread([&] { takers.IsTold(kChannel); }).join();
  takers.AwaitOthers(kChannel);
}

TEST(EventTakersTest, AThreadThatStaysAwayIsGivenUp) {
  EventTakers takers(kShort);
  const Taker taker(takers);
  takers.AwaitOthers(kChannel);
  EXPECT_FALSE(taker.asks());
}

TEST(EventTakersTest, ThreadsOfAClosedChannelAreNotAwaited) {
  EventTakers takers(kLong);
  const Taker taker(takers);
  takers.Forget(kChannel);
  takers.AwaitOthers(kChannel);
  EXPECT_FALSE(taker.asks());
}

}  // namespace
}  // namespace tokamak::verbs::kernel
