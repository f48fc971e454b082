// Tasks of other threads run on the loop in order, and not after the inbox was dropped.
#include "lib/verbs/ibv/inbox.h"

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::ElementsAre;

class InboxTest : public testing::Test {
 protected:
  // All that is sent until now runs, or never will.
  void RunAll() {
    bool reached = false;
    const base::Timer last = loop_.Post([&] { reached = true; });
    EXPECT_TRUE(loop_.RunUntil([&] { return reached; }, loop_.Now() + base::Seconds(20)));
    reached = false;
    const auto signal = loop_.MakeSignal([&] { reached = true; });
    signal->Raise();
    EXPECT_TRUE(loop_.RunUntil([&] { return reached; }, loop_.Now() + base::Seconds(20)));
  }

  os::EpollLoop loop_;
  std::optional<Inbox> inbox_{std::in_place, loop_};
  std::vector<int> ran_;
};

TEST_F(InboxTest, TasksOfAnotherThreadRunInTheirOrder) {
  const Inbox::Sender to = inbox_->sender();
  std::thread sends([&] {
    for (int i = 0; i < 3; ++i) {
      to.Send([this, i] { ran_.push_back(i); });
    }
  });
  sends.join();
  EXPECT_TRUE(ran_.empty());
  RunAll();
  EXPECT_THAT(ran_, ElementsAre(0, 1, 2));
}

TEST_F(InboxTest, ATaskThatDropsTheInboxIsTheLast) {
  const Inbox::Sender to = inbox_->sender();
  to.Send([this] { inbox_.reset(); });
  to.Send([this] { ran_.push_back(1); });
  RunAll();
  to.Send([this] { ran_.push_back(2); });
  RunAll();
  EXPECT_TRUE(ran_.empty());
}

TEST_F(InboxTest, TasksThatDoNotRunAreDropped) {
  const Inbox::Sender to = inbox_->sender();
  const auto before = std::make_shared<int>(), after = std::make_shared<int>();
  to.Send([before] {});
  EXPECT_EQ(before.use_count(), 2);
  inbox_.reset();
  EXPECT_EQ(before.use_count(), 1);
  to.Send([after] {});
  EXPECT_EQ(after.use_count(), 1);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
