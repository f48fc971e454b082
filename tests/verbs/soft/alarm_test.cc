// Alarms in virtual time: due when they should be, once, whoever set them.
#include "lib/verbs/soft/state/alarm.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AlarmTest : public ::testing::Test {
 protected:
  AlarmTest() : loop_(scheduler_), signal_(loop_.MakeSignal([this] { Turn(); })) {}

  void Turn() {
    clock_.Begin();
    clock_.Fire();
    clock_.End();
  }
  std::unique_ptr<Alarm> Make(int name) {
    return std::make_unique<Alarm>(clock_, [this, name] { due_.emplace_back(name, At()); });
  }
  int64_t At() const { return (clock_.now() - base::Time()).microseconds(); }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_;
  std::unique_ptr<base::Signal> signal_;
  AlarmClock clock_{loop_, [this] { signal_->Raise(); }, [this] { Turn(); }};
  std::vector<std::pair<int, int64_t>> due_;
};

TEST_F(AlarmTest, AlarmsComeDueInTheOrderOfTheirTimes) {
  auto a = Make(1), b = Make(2), c = Make(3);
  a->Set(base::Microseconds(30));
  b->Set(base::Microseconds(10));
  c->Set(base::Microseconds(20));
  scheduler_.Run();
  EXPECT_THAT(due_, ElementsAre(std::pair(2, 10), std::pair(3, 20), std::pair(1, 30)));
  EXPECT_FALSE(a->set());
}

TEST_F(AlarmTest, EqualTimesGoInTheOrderSet) {
  auto a = Make(1), b = Make(2), c = Make(3);
  for (Alarm* alarm : {c.get(), a.get(), b.get()}) alarm->Set(base::Microseconds(5));
  scheduler_.Run();
  EXPECT_THAT(due_, ElementsAre(std::pair(3, 5), std::pair(1, 5), std::pair(2, 5)));
}

TEST_F(AlarmTest, SettingAgainReplaces) {
  auto later = Make(1), earlier = Make(2);
  later->Set(base::Microseconds(10));
  earlier->Set(base::Microseconds(10));
  scheduler_.RunFor(base::Microseconds(5));
  later->Set(base::Microseconds(20));
  earlier->Set(base::Microseconds(1));
  scheduler_.Run();
  EXPECT_THAT(due_, ElementsAre(std::pair(2, 6), std::pair(1, 25)));
}

TEST_F(AlarmTest, ACancelledOrDroppedAlarmDoesNotRing) {
  auto a = Make(1), b = Make(2), c = Make(3), d = Make(4);
  for (Alarm* alarm : {a.get(), b.get(), c.get(), d.get()}) alarm->Set(base::Microseconds(10));
  c->Cancel();
  d.reset();
  scheduler_.RunFor(base::Microseconds(5));
  a->Cancel();
  b.reset();
  scheduler_.Run();
  EXPECT_THAT(due_, IsEmpty());
}

TEST_F(AlarmTest, TheLoopIsLeftAloneWhileNoAlarmIsSet) {
  auto a = Make(1);
  a->Set(base::Microseconds(10));
  scheduler_.RunFor(base::Microseconds(1));
  a->Cancel();
  Turn();
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(AlarmTest, AnAlarmMaySetAndDropAlarmsWhenItIsDue) {
  auto victim = Make(1);
  int ticks = 0;
  std::unique_ptr<Alarm> ticker;
  ticker = std::make_unique<Alarm>(clock_, [&] {
    victim.reset();
    if (++ticks < 3) ticker->Set(base::Microseconds(10));
  });
  ticker->Set(base::Microseconds(10));
  victim->Set(base::Microseconds(10));
  scheduler_.Run();
  EXPECT_EQ(ticks, 3);
  EXPECT_THAT(due_, IsEmpty());
}

TEST_F(AlarmTest, ManyAlarmsSetMovedAndCancelledAtRandomAllRingInTime) {
  base::Random random(5);
  constexpr size_t kAlarms = 200;
  std::vector<int64_t> expected(kAlarms, -1);
  std::vector<std::unique_ptr<Alarm>> alarms;
  for (size_t i = 0; i < kAlarms; ++i) {
    alarms.push_back(std::make_unique<Alarm>(clock_, [&, i] {
      EXPECT_EQ(expected[i], At());
      expected[i] = -1;
    }));
  }
  for (int step = 0; step < 20000; ++step) {
    const size_t i = random.Below(kAlarms);
    const int64_t now = (loop_.Now() - base::Time()).microseconds();
    if (random.Chance(0.2)) {
      alarms[i]->Cancel();
      expected[i] = -1;
    } else {
      const int64_t delay = 1 + static_cast<int64_t>(random.Below(100));
      alarms[i]->Set(base::Microseconds(delay));
      expected[i] = now + delay;
    }
    scheduler_.RunFor(base::Microseconds(static_cast<int64_t>(random.Below(3))));
  }
  scheduler_.Run();
  for (int64_t time : expected) EXPECT_EQ(time, -1);
}

}  // namespace
}  // namespace tokamak::verbs::soft
