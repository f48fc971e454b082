#include "lib/os/process/process_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <memory>
#include <utility>

#include "lib/os/epoll_loop.h"
#include "lib/os/process/child_process.h"

namespace tokamak::os {
namespace {

constexpr base::Duration kWatchPatience = base::Seconds(60);

class ProcessWatchTest : public testing::Test {
 protected:
  // A program that runs until it is stopped.
  ProcessWatchTest() {
    ChildOptions options;
    options.argv = {"sleep", "1000"};
    options.die_with_parent = true;
    auto child = ChildProcess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    child_ = *std::move(child);
  }

  bool RunUntilEnded() {
    return loop_.RunUntil([this] { return ended_ > 0; }, loop_.Now() + kWatchPatience);
  }

  EpollLoop loop_;
  std::unique_ptr<ChildProcess> child_;
  std::unique_ptr<ProcessWatch> watch_;
  int ended_ = 0;
};

TEST_F(ProcessWatchTest, TheEndIsReportedOnce) {
  auto watch = ProcessWatch::Start(loop_, child_->pid(), [this] { ++ended_; });
  ASSERT_TRUE(watch.ok()) << watch.status();
  EXPECT_TRUE((*watch)->running());
  loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(1));
  EXPECT_EQ(ended_, 0);
  ASSERT_TRUE(child_->Signal(SIGKILL).ok());
  EXPECT_TRUE(RunUntilEnded());  // also while nobody has waited for it
  EXPECT_FALSE((*watch)->running());
  loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(1));
  EXPECT_EQ(ended_, 1);
}

TEST_F(ProcessWatchTest, MayBeDroppedByItsCallback) {
  auto watch = ProcessWatch::Start(loop_, child_->pid(), [this] {
    watch_.reset();
    ++ended_;
  });
  ASSERT_TRUE(watch.ok()) << watch.status();
  watch_ = *std::move(watch);
  child_->Stop(base::Duration());
  EXPECT_TRUE(RunUntilEnded());
}

TEST_F(ProcessWatchTest, TheCallbackRunsThoughTheKernelCannotConfirmTheEnd) {
  auto watch = ProcessWatch::Start(loop_, child_->pid(), [] {});
  ASSERT_TRUE(watch.ok()) << watch.status();
  rlimit usual;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none = {0, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);  // poll(2) refuses even one descriptor
  pollfd nothing = {-1, 0, 0};
  const int polled = poll(&nothing, 1, 0);
  const bool running = (*watch)->running();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(polled, -1);
  EXPECT_TRUE(running);
}

TEST_F(ProcessWatchTest, AMissingProcessIsReported) {
  const pid_t pid = child_->pid();
  child_->Stop(base::Duration());
  EXPECT_TRUE(absl::IsNotFound(ProcessWatch::Start(loop_, pid, [] {}).status()));
}

TEST_F(ProcessWatchTest, AProcessOfAnotherNamespaceCannotBeWatched) {
  const absl::Status status = ProcessWatch::Start(loop_, 0, [] {}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(absl::IsNotFound(status)) << status;
}

}  // namespace
}  // namespace tokamak::os
