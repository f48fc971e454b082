// The order in which classes send.
#include "sim/fabric/switch/class_scheduler.h"

#include <array>

#include "tests/sim/fabric/parts_fixture.h"

namespace tokamak::sim {
namespace {

class ClassSchedulerTest : public PartsTest {
 protected:
  void TearDown() override {
    for (FrameQueue& queue : queues_) {
      while (!queue.empty()) frames_.Give(queue.Pop());
    }
  }

  // Priorities that always have frames of these sizes; returns the bytes that each sent.
  std::array<uint64_t, kPriorities> Run(const SchedulingOptions& options,
                                        const std::array<uint32_t, kPriorities>& sizes, int picks) {
    ClassScheduler scheduler(options);
    uint8_t ready = 0;
    for (uint8_t i = 0; i < kPriorities; ++i) {
      if (sizes[i] == 0) continue;
      ready = static_cast<uint8_t>(ready | 1u << i);
      queues_[i].Push(MakeFrame(0, i, sizes[i]));
    }
    std::array<uint64_t, kPriorities> sent{};
    for (int i = 0; i < picks; ++i) {
      const uint8_t priority = scheduler.Pick(ready, queues_);
      EXPECT_NE(ready & 1u << priority, 0u);
      sent[priority] += sizes[priority];
    }
    return sent;
  }

  std::array<FrameQueue, kPriorities> queues_;
};

TEST_F(ClassSchedulerTest, TheHighestStrictPriorityGoesFirst) {
  SchedulingOptions options;
  const auto sent = Run(options, {100, 0, 0, 100, 0, 0, 100, 100}, 10);
  EXPECT_EQ(sent[7], 1000u);
  options.weights[7] = 1;
  const auto without = Run(options, {100, 0, 0, 100, 0, 0, 100, 100}, 10);
  EXPECT_EQ(without[6], 1000u);
}

TEST_F(ClassSchedulerTest, WeightsShareBytesWhateverTheSizesOfFrames) {
  SchedulingOptions options;
  options.weights = {1, 2, 5, 1, 1, 1, 0, 0};
  const auto sent = Run(options, {4178, 86, 1106, 0, 0, 0, 0, 0}, 200'000);
  const double sum = static_cast<double>(sent[0] + sent[1] + sent[2]);
  EXPECT_NEAR(static_cast<double>(sent[0]) / sum, 1.0 / 8, 0.001);
  EXPECT_NEAR(static_cast<double>(sent[1]) / sum, 2.0 / 8, 0.001);
  EXPECT_NEAR(static_cast<double>(sent[2]) / sum, 5.0 / 8, 0.001);
}

class PortSharesTest : public SwitchTest {};

// Two ports feed a third with twice what it can send, in two priorities.
TEST_F(PortSharesTest, APortGivesEachPriorityTheShareOfItsWeight) {
  SwitchOptions options;
  options.pfc.lossless = 0;
  options.scheduling.weights = {1, 1, 1, 3, 1, 1, 0, 0};
  Build(3, options);
  for (uint32_t i = 0; i < 4000; ++i) {
    Arrive(0, 2, i, 0);
    Arrive(1, 2, i, 3);
    scheduler_.RunFor(base::Nanoseconds(80));
  }
  const double first = static_cast<double>(counters(2, 0).sent_bytes);
  const double second = static_cast<double>(counters(2, 3).sent_bytes);
  EXPECT_NEAR(second / first, 3, 0.05);
  EXPECT_NEAR(first + second, 4000 * 1000, 2000) << "the port was never idle";
  scheduler_.RunUntilIdle();
}

TEST_F(PortSharesTest, NotificationsPassWhatWaits) {
  Build(2, {});
  for (uint32_t i = 0; i < 10; ++i) Arrive(0, 1, i);
  Arrive(0, 1, 99, 6);
  scheduler_.RunUntilIdle();
  ASSERT_EQ(sink(1).arrived.size(), 11u);
  EXPECT_EQ(sink(1).arrived[0].psn, 0u) << "had begun already";
  EXPECT_EQ(sink(1).arrived[1].psn, 99u);
}

}  // namespace
}  // namespace tokamak::sim
