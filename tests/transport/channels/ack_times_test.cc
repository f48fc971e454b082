// The ack time-out of the next connections follows how long acknowledgements took of late.
#include "lib/transport/channels/ack_times.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/transport/endpoint_options.h"
#include "lib/verbs/time_codes.h"
#include "tests/transport/posting_device.h"
#include "tests/transport/world.h"

namespace tokamak::transport {
namespace {

using base::Microseconds;
using base::Milliseconds;
using base::Seconds;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;

// The suggestion of a device that reports 268 ms.
base::Duration Suitable() {
  verbs::Limits limits;
  limits.ack_delay = verbs::AckTimeout(16);
  return SuitableAckTimeout(limits);
}

TEST(AckTimesTest, UntilSomethingIsMeasuredTheReportCounts) {
  EXPECT_EQ(AckTimes().ForNext(base::Time(), Suitable()), Suitable());
  EXPECT_TRUE(Suitable() > kShortestAckTimeout);
}

TEST(AckTimesTest, ALinkThatAnswersAtOnceGetsTheShortest) {
  AckTimes times;
  times.Note(base::Time(), Microseconds(20));
  EXPECT_EQ(times.ForNext(base::Time(), Suitable()), kShortestAckTimeout);
}

TEST(AckTimesTest, ALinkThatBecomesSlowGetsMoreAndNeverMoreThanTheReport) {
  AckTimes times;
  base::Time now;
  times.Note(now, Microseconds(20));
  times.Note(now, Milliseconds(9));
  times.Note(now, Microseconds(20));
  EXPECT_EQ(times.ForNext(now, Suitable()), Milliseconds(72));
  times.Note(now, Seconds(3));
  EXPECT_EQ(times.ForNext(now, Suitable()), Suitable());
}

TEST(AckTimesTest, ALongTimeIsForgottenAfterAWhile) {
  AckTimes times;
  base::Time now;
  times.Note(now, Milliseconds(9));
  for (; now - base::Time() < kAckMemory * 2; now = now + Seconds(1)) {
    if (now - base::Time() < kAckMemory) {
      EXPECT_EQ(times.ForNext(now, Suitable()), Milliseconds(72)) << now.picoseconds();
    }
    times.Note(now, Microseconds(20));
  }
  EXPECT_EQ(times.ForNext(now, Suitable()), kShortestAckTimeout);
  EXPECT_EQ(times.ForNext(now + kAckMemory * 2, Suitable()), Suitable()) << "nothing is known any more";
}

TEST(AckTimesTest, ALimitBelowTheShortestRules) {
  AckTimes times;
  times.Note(base::Time(), Milliseconds(10));
  EXPECT_EQ(times.ForNext(base::Time(), Milliseconds(1)), Milliseconds(1));
}

// Between engines, over a link of this latency: the time-outs that connections were given, of the
// first peer and of its bulk queue pairs, which are made later.
class MeasuredTimeoutTest : public ::testing::Test {
 protected:
  void Run(base::Duration latency, bool repeats_may_fail = false) {
    testing::WorldOptions slow;
    slow.link = testing::FastLink();
    slow.link.latency = latency;
    testing::World world(slow);
    testing::NodeOptions options;
    options.endpoint.measures_ack_timeout = true;
    options.endpoint.reliability.ack_timeout = Suitable();
    testing::Node& owner = world.Add(options);
    options.wrap = [this, repeats_may_fail](std::unique_ptr<verbs::Device> device) {
      verbs::Limits limits = device->limits();
      limits.repeats_may_fail = repeats_may_fail;
      testing::DeviceHooks hooks;
      hooks.on_connect = [this](const verbs::ConnectOptions& given) {
        timeouts_.push_back(given.reliability.ack_timeout);
      };
      hooks.limits = limits;
      return testing::WithHooks(std::move(device), std::move(hooks));
    };
    testing::Node& puller = world.Add(options);
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(world.Finish(puller.Pull(owner, owner.AddObject(100), Protocol::kEager)));
    }
    first_ = std::exchange(timeouts_, {});
    EXPECT_TRUE(world.Finish(puller.Pull(owner, owner.AddObject(10 << 20), Protocol::kRead)));
  }

  std::vector<base::Duration> first_, timeouts_;
};

TEST_F(MeasuredTimeoutTest, OverAFastLinkBulkQueuePairsGetTheShortest) {
  Run(Microseconds(10));
  EXPECT_THAT(first_, Each(Suitable()));
  EXPECT_THAT(timeouts_, Not(IsEmpty()));
  EXPECT_THAT(timeouts_, Each(kShortestAckTimeout));
}

TEST_F(MeasuredTimeoutTest, OverASlowLinkTheyGetMore) {
  Run(Microseconds(4500));  // 9 ms there and back
  EXPECT_THAT(timeouts_, Not(IsEmpty()));
  for (const base::Duration timeout : timeouts_) {
    EXPECT_GE(timeout.milliseconds(), 8 * 9);
    EXPECT_LE(timeout.milliseconds(), Suitable().milliseconds());
  }
}

TEST_F(MeasuredTimeoutTest, WhereRepeatingIsDangerousTheyGetTheReportedTime) {
  Run(Microseconds(10), /*repeats_may_fail=*/true);
  EXPECT_THAT(timeouts_, Not(IsEmpty()));
  EXPECT_THAT(timeouts_, Each(Suitable()));
}

}  // namespace
}  // namespace tokamak::transport
