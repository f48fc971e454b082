// The time in which answers must and should come, in virtual time.
#include "lib/verbs/soft/rc/answer_clock.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/verbs/time_codes.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr base::Duration kAgreed = base::Milliseconds(1);
constexpr base::Duration kUsual = base::Microseconds(100);
constexpr base::Duration kAllowedPause = base::Microseconds(20);

// Knows when answers are overdue as soon as it has heard of a round trip.
class LearningCongestion final : public Congestion {
 public:
  void Reset() override {}
  uint32_t Window() const override { return 1; }
  void OnRoundTrip(base::Duration time) override { round_trips.push_back(time.microseconds()); }
  std::optional<base::Duration> Overdue() const override { return overdue; }

  std::vector<int64_t> round_trips;
  std::optional<base::Duration> overdue = kUsual;
};

class AnswerClockTest : public ::testing::Test {
 protected:
  AnswerClockTest() : loop_(scheduler_), signal_(loop_.MakeSignal([this] { Turn([] {}); })) { clock_.Start(); }

  // The NIC's turns, in one of which `work` is done.
  void Turn(const std::function<void()>& work) {
    alarms_.Begin();
    alarms_.Fire();
    work();
    alarms_.End();
  }
  int64_t At() const { return (alarms_.now() - base::Time()).microseconds(); }
  void Pass(base::Duration time) { scheduler_.RunFor(time); }
  // The NIC does nothing for `time`; then it has its turn.
  void Sleep(base::Duration time) {
    asleep_ = true;
    Pass(time);
    asleep_ = false;
    Turn([] {});
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_;
  std::unique_ptr<base::Signal> signal_;
  bool asleep_ = false;
  AlarmClock alarms_{loop_, [this] { signal_->Raise(); },
                     [this] {
                       if (!asleep_) Turn([] {});
                     }};
  LearningCongestion congestion_;
  std::vector<int64_t> timeouts_, overdue_, put_off_;
  AnswerClock clock_{alarms_, congestion_, kAllowedPause, [this] { timeouts_.push_back(At()); },
                     [this] { (clock_.CountOverdue() ? overdue_ : put_off_).push_back(At()); }};
};

TEST_F(AnswerClockTest, AnAnswerIsOverdueOnceAndThenTimesOut) {
  Turn([&] { clock_.Run(kAgreed); });
  scheduler_.Run();
  EXPECT_THAT(overdue_, ElementsAre(kUsual.microseconds()));
  EXPECT_THAT(timeouts_, ElementsAre(AckTimeout(AckTimeoutCode(kAgreed)).microseconds()));
}

TEST_F(AnswerClockTest, WhereNoRoundTripIsKnownOnlyTheAgreedTimeRuns) {
  congestion_.overdue = std::nullopt;
  Turn([&] { clock_.Run(kAgreed); });
  scheduler_.Run();
  EXPECT_THAT(overdue_, IsEmpty());
  EXPECT_EQ(timeouts_.size(), 1u);
}

TEST_F(AnswerClockTest, StoppedItStaysSilent) {
  Turn([&] { clock_.Run(kAgreed); });
  Turn([&] { clock_.Stop(); });
  scheduler_.Run();
  EXPECT_THAT(overdue_, IsEmpty());
  EXPECT_THAT(timeouts_, IsEmpty());
}

TEST_F(AnswerClockTest, SendingAgainDoesNotPutTheAgreedTimeOff) {
  Turn([&] { clock_.Run(kAgreed); });
  Pass(kUsual);
  Turn([&] { clock_.Run(kAgreed); });
  scheduler_.Run();
  EXPECT_THAT(timeouts_, ElementsAre(AckTimeout(AckTimeoutCode(kAgreed)).microseconds()));
}

TEST_F(AnswerClockTest, AnAnswerBeginsBothTimesAgain) {
  Turn([&] { clock_.Run(kAgreed); });
  Pass(base::Microseconds(50));
  Turn([&] { clock_.RunAgain(kAgreed); });
  scheduler_.Run();
  EXPECT_THAT(overdue_, ElementsAre(50 + kUsual.microseconds()));
  EXPECT_THAT(timeouts_, ElementsAre(50 + AckTimeout(AckTimeoutCode(kAgreed)).microseconds()));
}

TEST_F(AnswerClockTest, TheOverdueTimeDoublesUntilARoundTripIsMeasured) {
  for (int again = 0; again < 3; ++again) {
    Turn([&] { clock_.Run(kAgreed); });
    Pass(kUsual * (1 << again));
  }
  EXPECT_THAT(overdue_, ElementsAre(100, 300, 700));
  Turn([&] { clock_.Measure(5); });
  Turn([&] { clock_.OnAcknowledged(6); });
  Turn([&] { clock_.RunAgain(kAgreed); });
  Pass(kUsual);
  EXPECT_THAT(overdue_, ElementsAre(100, 300, 700, 800));
}

TEST_F(AnswerClockTest, NothingIsOverdueWhereTheAgreedTimeComesFirst) {
  congestion_.overdue = kAgreed;
  Turn([&] { clock_.Run(kAgreed); });
  scheduler_.Run();
  EXPECT_THAT(overdue_, IsEmpty());
}

TEST_F(AnswerClockTest, ANicThatSleptItselfPutsItOffOnce) {
  Turn([&] { clock_.Run(kAgreed); });
  Sleep(kUsual + kAllowedPause + base::Microseconds(1));
  EXPECT_THAT(put_off_, ElementsAre(121));
  Pass(kAllowedPause);
  EXPECT_THAT(overdue_, ElementsAre(121 + kAllowedPause.microseconds()));
}

TEST_F(AnswerClockTest, ARoundTripIsOnePacketsFromItsSendingToItsAcknowledgement) {
  Turn([&] { clock_.Measure(5); });
  Pass(base::Microseconds(10));
  Turn([&] {
    clock_.Measure(8);  // the first is measured still
    clock_.OnAcknowledged(5);
  });
  EXPECT_THAT(congestion_.round_trips, IsEmpty());
  Pass(base::Microseconds(20));
  Turn([&] { clock_.OnAcknowledged(9); });
  Turn([&] { clock_.OnAcknowledged(9); });
  EXPECT_THAT(congestion_.round_trips, ElementsAre(30));
}

TEST_F(AnswerClockTest, APacketSentAgainIsNotMeasured) {
  Turn([&] { clock_.Measure(5); });
  Turn([&] { clock_.ForgetRoundTrip(); });
  Turn([&] { clock_.OnAcknowledged(6); });
  EXPECT_THAT(congestion_.round_trips, IsEmpty());
}

}  // namespace
}  // namespace tokamak::verbs::soft
