// How a loop hears of completions: over one channel for all its queues, and without a wake-up for
// what was polled already.
#include <poll.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/poller.h"
#include "lib/verbs/ibv/device.h"
#include "tests/verbs/ibv/recording_verbs.h"

namespace tokamak::verbs::ibv {
namespace {

// Runs a function each time that the loop goes to sleep, behind the pollers that were there before:
// while the loop arms them, or when each of them has looked for the last time.
class BeforeSleep final : public os::Poller {
 public:
  enum class Moment { kArming, kLastLook };

  BeforeSleep(os::EpollLoop& loop, Moment moment, std::function<void(int)> body)
      : moment_(moment), body_(std::move(body)), handle_(loop.AddPoller(*this)) {}

  bool Poll() override {
    if (std::exchange(armed_, false) && moment_ == Moment::kLastLook) body_(++count_);
    return false;
  }
  void Arm() override {
    armed_ = true;
    if (moment_ == Moment::kArming) body_(++count_);
  }
  int descriptor() const override { return -1; }

 private:
  const Moment moment_;
  const std::function<void(int)> body_;
  bool armed_ = false;
  int count_ = 0;
  const os::PollerHandle handle_;
};

using Moment = BeforeSleep::Moment;

// A loop on this one never thinks that it is long since it looked at its descriptors.
uint64_t SlowClock() {
  static uint64_t nanoseconds = 0;
  return nanoseconds += 100;
}

class CompletionEventsTest : public testing::Test {
 protected:
  struct Queue {
    std::unique_ptr<CompletionQueue> handle;
    std::unique_ptr<QueuePair> user;
    ibv_cq* provided = nullptr;
    int events = 0;
  };

  CompletionEventsTest() {
    RecordingVerbs::Reset();
    DeviceOptions options;
    options.name.device = RecordingVerbs::kDevice;
    options.exchange = Exchange::kTcp;
    options.tcp_address = *Address::Parse("127.0.0.1");
    device_ = *OpenIbvDevice(options);
    domain_ = *device_->CreateProtectionDomain();
    RecordingVerbs::Reset();
  }

  std::unique_ptr<Queue> Make(os::EpollLoop& loop) {
    auto queue = std::make_unique<Queue>();
    queue->handle = *device_->CreateCompletionQueue(loop, 16, [queue = queue.get()] { ++queue->events; });
    queue->provided = verbs_.queues.back();
    QueuePairOptions options;
    options.send_queue = options.receive_queue = queue->handle.get();
    queue->user = *domain_->CreateQueuePair(options);
    return queue;
  }

  // A message arrives.
  void Receive(Queue& queue) {
    const ReceiveRequest request;
    ASSERT_EQ(queue.user->PostReceive({&request, 1}).accepted, 1u);
    ibv_wc done{};
    done.wr_id = verbs_.receives.back();
    done.opcode = IBV_WC_RECV;
    done.qp_num = queue.user->number();
    verbs_.Complete(queue.provided, done);
  }

  size_t Drain(Queue& queue) {
    std::vector<Completion> completions(4);
    return queue.handle->Poll(absl::MakeSpan(completions));
  }

  bool RunUntil(const std::function<bool()>& done) { return loop_.RunUntil(done, loop_.Now() + base::Seconds(20)); }

  RecordingVerbs& verbs_ = RecordingVerbs::Get();
  os::EpollLoop loop_{os::Detection(), SlowClock};
  std::unique_ptr<Device> device_;
  std::unique_ptr<ProtectionDomain> domain_;
};

TEST_F(CompletionEventsTest, TheQueuesOfALoopShareAChannelThatGoesWithTheLastQueue) {
  auto first = Make(loop_);
  auto second = Make(loop_);
  EXPECT_EQ(verbs_.channels, 1);
  {
    os::EpollLoop other_loop;
    const auto other = Make(other_loop);
    EXPECT_EQ(verbs_.channels, 2);
  }
  first.reset();
  EXPECT_EQ(verbs_.channels, 1);
  second.reset();
  EXPECT_EQ(verbs_.channels, 0);
  const auto again = Make(loop_);
  EXPECT_EQ(verbs_.channels, 1);
}

TEST_F(CompletionEventsTest, AnEventGoesToItsOwnQueue) {
  const auto one = Make(loop_), other = Make(loop_);
  one->handle->RequestNotify(false);
  other->handle->RequestNotify(false);
  base::Timer arrival;
  const BeforeSleep probe(loop_, Moment::kLastLook, [&](int count) {
    if (count == 1) arrival = loop_.Post([&] { verbs_.Complete(other->provided, {}); });
  });
  ASSERT_TRUE(RunUntil([&] { return other->events > 0; }));
  EXPECT_EQ(one->events, 0);
}

TEST_F(CompletionEventsTest, AQueueThatGoesTakesUnreadEventsAlong) {
  const auto stays = Make(loop_);
  auto goes = Make(loop_);
  stays->handle->RequestNotify(false);
  goes->handle->RequestNotify(true);
  verbs_.Complete(goes->provided, {});
  goes.reset();
  base::Timer arrival;
  const BeforeSleep probe(loop_, Moment::kLastLook, [&](int count) {
    if (count == 1) arrival = loop_.Post([&] { Receive(*stays); });
  });
  ASSERT_TRUE(RunUntil([&] { return stays->events > 0; }));
  EXPECT_EQ(Drain(*stays), 1u);
}

TEST_F(CompletionEventsTest, NoEventOfAPolledCompletionEndsASleep) {
  const auto queue = Make(loop_);
  queue->handle->RequestNotify(false);
  base::Timer arrival;
  bool slept = false;
  const BeforeSleep probe(loop_, Moment::kLastLook, [&](int count) {
    if (count == 1) {
      EXPECT_EQ(verbs_.armed.count(queue->provided), 1u);
      arrival = loop_.Post([&] {
        Receive(*queue);
        EXPECT_EQ(Drain(*queue), 1u);
      });
    } else if (!slept) {
      pollfd channel = {queue->provided->channel->fd, POLLIN, 0};
      EXPECT_EQ(poll(&channel, 1, 0), 0) << "the loop would wake up at once";
      EXPECT_EQ(verbs_.armed.count(queue->provided), 1u) << "the loop would not wake up for the next";
      slept = true;
      arrival = loop_.Post([] {});
    }
  });
  ASSERT_TRUE(RunUntil([&] { return slept; }));
  EXPECT_EQ(queue->events, 0);
  EXPECT_EQ(verbs_.event_reads, 1);
}

TEST_F(CompletionEventsTest, SleepingAndWakingReadsNoMoreThanTheEvent) {
  const auto queue = Make(loop_);
  queue->handle->RequestNotify(false);
  const BeforeSleep arrivals(loop_, Moment::kLastLook, [&](int) { Receive(*queue); });
  constexpr int kMessages = 10;
  for (int i = 1; i <= kMessages; ++i) {
    ASSERT_TRUE(RunUntil([&] { return queue->events == i; }));
    EXPECT_EQ(Drain(*queue), 1u);
    queue->handle->RequestNotify(false);
  }
  EXPECT_EQ(verbs_.event_reads, kMessages);
}

TEST_F(CompletionEventsTest, OneWakeUpServesAllReadyQueues) {
  const auto one = Make(loop_), other = Make(loop_);
  bool slept_again = false;
  base::Timer next;
  const BeforeSleep probe(loop_, Moment::kLastLook, [&](int count) {
    if (count == 1) {
      Receive(*one);
      Receive(*other);
    } else {
      slept_again = true;
      next = loop_.Post([] {});
    }
  });
  one->handle->RequestNotify(false);
  other->handle->RequestNotify(false);
  const uint64_t waits = loop_.waits();
  ASSERT_TRUE(RunUntil([&] { return one->events + other->events == 2; }));
  EXPECT_EQ(loop_.waits() - waits, 1u);
  one->handle->RequestNotify(false);
  other->handle->RequestNotify(false);
  ASSERT_TRUE(RunUntil([&] { return slept_again; }));
  EXPECT_EQ(verbs_.event_reads, 2);
}

// Another queue's Arm may take the event of one that was armed before.
TEST_F(CompletionEventsTest, AQueueWhoseEventCameLateIsArmedAgainBeforeTheLoopSleeps) {
  const auto first = Make(loop_);
  const BeforeSleep between(loop_, Moment::kArming, [&](int count) {
    if (count == 2) verbs_.ReleaseEvents();
  });
  const auto second = Make(loop_);
  first->handle->RequestNotify(false);
  second->handle->RequestNotify(false);
  base::Timer arrival;
  bool armed = false;
  const BeforeSleep last(loop_, Moment::kLastLook, [&](int count) {
    if (count == 1) {
      verbs_.events_are_late = true;
      arrival = loop_.Post([&] {
        for (Queue* queue : {first.get(), second.get()}) {
          Receive(*queue);
          EXPECT_EQ(Drain(*queue), 1u);
        }
      });
    } else if (count == 3) {
      armed = verbs_.armed.count(first->provided) == 1;
      arrival = loop_.Post([] {});
    }
  });
  ASSERT_TRUE(RunUntil([&] { return armed; }));
  EXPECT_EQ(first->events, 0);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
