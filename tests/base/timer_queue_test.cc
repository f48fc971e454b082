#include "lib/base/timer_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/random.h"

namespace tokamak::base {
namespace {

Time At(int64_t microseconds) { return Time() + Microseconds(microseconds); }

class TimerQueueTest : public testing::Test {
 protected:
  uint64_t Add(Time time, int what) {
    return queue_.Add(time, order_++, [this, what] { ran_.push_back(what); });
  }
  void RunAll() {
    while (!queue_.empty()) queue_.Take()();
  }

  TimerQueue queue_;
  uint64_t order_ = 0;
  std::vector<int> ran_;
};

using Order = std::vector<int>;

TEST_F(TimerQueueTest, GivesTasksByTimeAndThenByOrder) {
  Add(At(2), 20);
  Add(At(1), 10);
  Add(At(2), 21);
  Add(At(1), 11);
  EXPECT_TRUE(queue_.next_time() == At(1));
  EXPECT_EQ(queue_.next_order(), 1u);
  RunAll();
  EXPECT_EQ(ran_, (Order{10, 11, 20, 21}));
}

TEST_F(TimerQueueTest, OrdersAcrossTheWrapOfTime) {
  Add(At(1), 2);
  Add(At(-1), 1);
  Add(At(3), 3);
  RunAll();
  EXPECT_EQ(ran_, (Order{1, 2, 3}));
}

TEST_F(TimerQueueTest, ARemovedTaskIsGoneAndItsTicketStale) {
  const uint64_t ticket = Add(At(1), 1);
  Add(At(2), 2);
  EXPECT_TRUE(queue_.Contains(ticket));
  queue_.Remove(ticket);
  EXPECT_FALSE(queue_.Contains(ticket));
  queue_.Remove(ticket);
  EXPECT_EQ(queue_.size(), 1u);
  RunAll();
  EXPECT_EQ(ran_, (Order{2}));
}

TEST_F(TimerQueueTest, ATakenTaskIsNoLongerContained) {
  const uint64_t ticket = Add(At(1), 1);
  const Task task = queue_.Take();
  EXPECT_FALSE(queue_.Contains(ticket));
}

TEST_F(TimerQueueTest, NoTicketIsGivenTwice) {
  std::set<uint64_t> tickets;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t ticket = Add(At(i), i);
    EXPECT_NE(ticket, 0u);
    EXPECT_TRUE(tickets.insert(ticket).second);
    if (i % 2 == 0) queue_.Remove(ticket);
    if (i % 3 == 0 && !queue_.empty()) queue_.Take();
  }
}

TEST_F(TimerQueueTest, TicketsItNeverGaveAreNotContained) {
  EXPECT_FALSE(queue_.Contains(0));
  EXPECT_FALSE(queue_.Contains(UINT64_MAX));
  queue_.Remove(12345);
}

TEST_F(TimerQueueTest, ATaskThatIsDestroyedMayUseTheQueue) {
  struct Chain {
    TimerQueue* queue;
    uint64_t ticket;
    ~Chain() { queue->Remove(ticket); }
  };
  const uint64_t last = Add(At(3), 3);
  auto second = std::make_shared<Chain>(Chain{&queue_, last});
  const uint64_t middle = queue_.Add(At(2), order_++, [second] {});
  auto first = std::make_shared<Chain>(Chain{&queue_, middle});
  const uint64_t begin = queue_.Add(At(1), order_++, [first] {});
  second.reset();
  first.reset();
  queue_.Remove(begin);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(TimerQueueTest, ClearAlsoForgetsTasksAddedByDestructors) {
  struct Phoenix {
    TimerQueue* queue;
    int lives;
    ~Phoenix() {
      if (lives > 0) queue->Add(At(1), 1000, [again = std::make_shared<Phoenix>(Phoenix{queue, lives - 1})] {});
    }
  };
  queue_.Add(At(1), order_++, [phoenix = std::make_shared<Phoenix>(Phoenix{&queue_, 0})] {});
  auto phoenix = std::make_shared<Phoenix>(Phoenix{&queue_, 0});
  phoenix->lives = 3;
  queue_.Add(At(2), order_++, [phoenix] {});
  phoenix.reset();
  queue_.Clear();
  EXPECT_TRUE(queue_.empty());
}

TEST_F(TimerQueueTest, ThousandsOfRemovedTasksLeaveNothingBehind) {
  Add(At(1), 1);
  for (int i = 0; i < 100'000; ++i) queue_.Remove(Add(At(2 + i), 2));
  const uint64_t last = Add(At(200'000), 3);
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_TRUE(queue_.Contains(last));
  EXPECT_TRUE(queue_.next_time() == At(1));
  RunAll();
  EXPECT_EQ(ran_, (Order{1, 3}));
}

TEST_F(TimerQueueTest, ATaskThatReplacesTheFrontMayBeFirstOrLast) {
  Add(At(1), 1);
  Add(At(5), 5);
  queue_.Take()();
  Add(At(9), 9);
  EXPECT_TRUE(queue_.next_time() == At(5));
  queue_.Take()();
  Add(At(7), 7);
  RunAll();
  EXPECT_EQ(ran_, (Order{1, 5, 7, 9}));
}

// Against a sorted map, with everything at random.
TEST_F(TimerQueueTest, BehavesAsASortedMap) {
  struct Entry {
    int what;
    uint64_t ticket;
  };
  Random random(1);
  std::map<std::pair<int64_t, uint64_t>, Entry> model;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t dice = random.Below(10);
    if (dice < 5) {
      const int64_t time = static_cast<int64_t>(random.Below(50));
      const uint64_t order = order_;
      model[{time, order}] = {i, Add(At(time), i)};
    } else if (dice < 7 && !model.empty()) {
      const auto victim =
          std::next(model.begin(), static_cast<int64_t>(random.Below(std::min<size_t>(model.size(), 30))));
      queue_.Remove(victim->second.ticket);
      model.erase(victim);
    } else if (!model.empty()) {
      ASSERT_TRUE(queue_.next_time() == At(model.begin()->first.first));
      ASSERT_EQ(queue_.next_order(), model.begin()->first.second);
      queue_.Take()();
      ASSERT_EQ(ran_.back(), model.begin()->second.what);
      model.erase(model.begin());
    }
    ASSERT_EQ(queue_.size(), model.size());
  }
}

}  // namespace
}  // namespace tokamak::base
