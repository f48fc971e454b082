// Threads that are cancelled (pthread_cancel(3)) in the middle of calls: they end, and leave
// nothing behind that another call would wait for.
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "tests/verbs/kernel/loop_pair.h"

namespace tokamak::verbs::kernel {
namespace {

// A thread that runs `call`, until it is joined.
class Cancellable final {
 public:
  explicit Cancellable(std::function<void()> call) : call_(std::move(call)) {
    EXPECT_EQ(pthread_create(&thread_, nullptr, &Run, this), 0);
    while (id_.load() == 0) sched_yield();
  }

  // Returns once it has gone to sleep, of which nothing tells.
  void AwaitSleep() const {
    const std::string stat = "/proc/self/task/" + std::to_string(id_.load()) + "/stat";
    for (char state = '?'; state != 'S'; sched_yield()) {
      std::ifstream file(stat);
      std::string line;
      std::getline(file, line);
      const size_t name_end = line.rfind(')');
      if (name_end != std::string::npos && name_end + 2 < line.size()) state = line[name_end + 2];
    }
  }

  void Cancel() const { EXPECT_EQ(pthread_cancel(thread_), 0); }

  // Whether it was cancelled, and did not end by itself.
  bool Join() const {
    void* result = nullptr;
    EXPECT_EQ(pthread_join(thread_, &result), 0);
    return result == PTHREAD_CANCELED;
  }

 private:
  static void* Run(void* self) {
    auto* const cancellable = static_cast<Cancellable*>(self);
    cancellable->id_.store(static_cast<pid_t>(syscall(SYS_gettid)));
    cancellable->call_();
    return nullptr;
  }

  const std::function<void()> call_;
  pthread_t thread_{};
  std::atomic<pid_t> id_{0};
};

class CancelTest : public LoopPair {
 protected:
  void AwaitCompletion() {
    ibv_cq* queue = nullptr;
    void* name = nullptr;
    if (ibv_get_cq_event(channel_, &queue, &name) == 0) ibv_ack_cq_events(queue, 1);
  }
  void AwaitAsyncEvent() {
    ibv_async_event event;
    if (ibv_get_async_event(context_, &event) == 0) ibv_ack_async_event(&event);
  }
};

// As a program waits first looks on for a moment, and then sleeps: it is cancelled in both.
TEST_F(CancelTest, AThreadThatWaitsForAnEventEnds) {
  const std::function<void()> waits[] = {[this] { AwaitCompletion(); }, [this] { AwaitAsyncEvent(); }};
  for (const auto& wait : waits) {
    for (int round = 0; round < 10; ++round) {
      ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
      const Cancellable thread(wait);
      if (round % 2 == 0) thread.AwaitSleep();
      thread.Cancel();
      EXPECT_TRUE(thread.Join());
    }
    ExpectThatItWorks();
  }
}

TEST_F(CancelTest, AThreadThatWaitsForTheConnectionManagerEnds) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
  for (int round = 0; round < 10; ++round) {
    const Cancellable thread([&] {
      rdma_cm_event* event = nullptr;
      rdma_get_cm_event(channel, &event);
    });
    if (round % 2 == 0) thread.AwaitSleep();
    thread.Cancel();
    EXPECT_TRUE(thread.Join());
  }
  EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(channel);
  ExpectThatItWorks();
}

// One of two waiting threads serves the network.
TEST_F(CancelTest, AnotherWaitingThreadGetsItsEventAllTheSame) {
  const Cancellable first([this] { AwaitAsyncEvent(); });
  first.AwaitSleep();
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  const Cancellable second([this] { AwaitCompletion(); });
  second.AwaitSleep();
  first.Cancel();
  EXPECT_TRUE(first.Join());
  EXPECT_EQ(Run(IBV_WR_RDMA_WRITE, Own(0, 8), OwnAddress(128), ours_->rkey), IBV_WC_SUCCESS);
  EXPECT_FALSE(second.Join());
}

TEST_F(CancelTest, AThreadThatPollsLeavesNoLockBehind) {
  for (int round = 0; round < 10; ++round) {
    std::atomic<int> polls{0};
    const Cancellable thread([&] {
      for (;; ++polls) {
        ibv_wc completion;
        if (ibv_poll_cq(queue_, 1, &completion) < 0) return;
        pthread_testcancel();
      }
    });
    while (polls.load() < 100) sched_yield();
    thread.Cancel();
    EXPECT_TRUE(thread.Join());
    ExpectThatItWorks();
  }
}

// The program's cancellation state is its own again after each call.
TEST_F(CancelTest, AThreadThatDisabledCancellationGoesOn) {
  std::atomic<bool> waits{false};
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  const Cancellable thread([&] {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    waits.store(true);
    AwaitCompletion();
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    EXPECT_EQ(before, PTHREAD_CANCEL_DISABLE);
  });
  while (!waits.load()) sched_yield();
  thread.AwaitSleep();
  thread.Cancel();
  EXPECT_EQ(Run(IBV_WR_RDMA_WRITE, Own(0, 8), OwnAddress(128), ours_->rkey), IBV_WC_SUCCESS);
  EXPECT_FALSE(thread.Join());
}

}  // namespace
}  // namespace tokamak::verbs::kernel
