// A program that closes whatever descriptors there are while it works with a device: its device is
// closed then, and it goes on.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/verbs/kernel/loop_pair.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr int kFirst = 3;
constexpr int kMost = 256;

class DescriptorsTest : public LoopPair {
 protected:
  // All that is made is its device's, which is gone.
  void TearDown() override { ibv_close_device(context_); }

  int QueryError() {
    ibv_device_attr attributes;
    return ibv_query_device(context_, &attributes);
  }

  static void CloseOneByOne() {
    for (int descriptor = kFirst; descriptor < kMost; ++descriptor) close(descriptor);
  }

  // Descriptors that are open, as far as the program can know them.
  static std::vector<int> Open() {
    std::vector<int> open;
    for (int descriptor = kFirst; descriptor < kMost; ++descriptor) {
      if (fcntl(descriptor, F_GETFD) >= 0) open.push_back(descriptor);
    }
    return open;
  }
};

TEST_F(DescriptorsTest, AProgramThatClosesAllDescriptorsFailsInTheNextCall) {
  const std::function<void()> sweeps[] = {
      [] { closefrom(kFirst); },
      [] { EXPECT_EQ(close_range(kFirst, UINT_MAX, 0), 0); },
      [] { CloseOneByOne(); },
  };
  for (const auto& sweep : sweeps) {
    ExpectThatItWorks();
    sweep();
    EXPECT_EQ(QueryError(), EBADF);
    EXPECT_EQ(ibv_req_notify_cq(queue_, 0), EBADF);
    ibv_wc completion;
    EXPECT_LT(ibv_poll_cq(queue_, 1, &completion), 0) << "who polls would poll for ever";
    EXPECT_EQ(ibv_destroy_qp(pairs_[0]), EBADF);
    // It may open the device again.
    ASSERT_EQ(ibv_close_device(context_), 0);
    LoopPair::SetUp();
    if (HasFatalFailure()) return;
  }
  ExpectThatItWorks();
}

TEST_F(DescriptorsTest, DescriptorsThatAProgramNeverOpenedAreClosedToIt) {
  int refused = 0;
  for (const int descriptor : Open()) {
    if (descriptor == context_->cmd_fd || descriptor == context_->async_fd || descriptor == channel_->fd) continue;
    errno = 0;
    if (close(descriptor) == 0 || errno != EBADF) continue;  // the test's
    ++refused;
    EXPECT_EQ(dup2(STDOUT_FILENO, descriptor), -1);
    EXPECT_EQ(errno, EBUSY);
  }
  EXPECT_GT(refused, 0);
  ExpectThatItWorks();
}

// As programs do before they run another one.
TEST_F(DescriptorsTest, AChildMayCloseAllDescriptors) {
  for (const bool shares_memory : {false, true}) {
    const pid_t child = shares_memory ? vfork() : fork();
    if (child == 0) {
      close_range(kFirst, UINT_MAX, 0);
      for (int descriptor = kFirst; descriptor < kMost; ++descriptor) {
        if (fcntl(descriptor, F_GETFD) >= 0) _exit(1);
      }
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << (shares_memory ? "vfork" : "fork");
    ExpectThatItWorks();
  }
}

}  // namespace
}  // namespace tokamak::verbs::kernel
