#include "lib/base/phase_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "nlohmann/json.hpp"

namespace tokamak::base {
namespace {

class PhaseLogTest : public testing::Test {
 protected:
  void Say(Phase phase, int microseconds, uint64_t activity = 1, uint32_t node = 1, PhaseLog* log = nullptr) {
    (log == nullptr ? log_ : *log)
        .Record(
            {Time() + Microseconds(microseconds), TraceKind::kPhase, node, static_cast<uint32_t>(phase), 0, activity});
  }
  static Duration Of(const PhaseLog::Totals& totals, Phase phase) { return totals.phases[static_cast<size_t>(phase)]; }

  PhaseLog log_{100};
};

TEST_F(PhaseLogTest, APhaseLastsUntilTheNext) {
  Say(Phase::kDirectory, 10);
  Say(Phase::kRequest, 15);
  Say(Phase::kData, 35);
  Say(Phase::kRequest, 36);
  Say(Phase::kOver, 40);
  const PhaseLog::Totals totals = log_.TakeTotals();
  EXPECT_EQ(totals.activities, 1u);
  EXPECT_EQ(Of(totals, Phase::kDirectory), Microseconds(5));
  EXPECT_EQ(Of(totals, Phase::kRequest), Microseconds(24));
  EXPECT_EQ(Of(totals, Phase::kData), Microseconds(1));
  EXPECT_EQ(Of(totals, Phase::kSeal), Duration());
  ASSERT_EQ(log_.entries().size(), 4u);
  EXPECT_EQ(log_.entries()[1].begin, Time() + Microseconds(15));
  EXPECT_EQ(log_.entries()[1].length, Microseconds(20));
  EXPECT_EQ(log_.TakeTotals().activities, 0u) << "they were taken";
}

TEST_F(PhaseLogTest, ActivitiesAndNodesAreSeparate) {
  Say(Phase::kDirectory, 0, 1, 1);
  Say(Phase::kDirectory, 1, 2, 1);
  Say(Phase::kDirectory, 2, 1, 2);
  Say(Phase::kOver, 10, 1, 1);
  Say(Phase::kOver, 20, 1, 2);
  const PhaseLog::Totals totals = log_.TakeTotals();
  EXPECT_EQ(totals.activities, 2u) << "one is not over";
  EXPECT_EQ(Of(totals, Phase::kDirectory), Microseconds(10 + 18));
}

TEST_F(PhaseLogTest, PhasesOutsideAnActivityAreIgnored) {
  Say(Phase::kData, 1);
  Say(Phase::kDirectory, 2);
  Say(Phase::kOver, 3);
  Say(Phase::kQueue, 4);
  Say(Phase::kOver, 5);
  EXPECT_EQ(log_.TakeTotals().activities, 1u);
  EXPECT_EQ(log_.entries().size(), 1u);
}

TEST_F(PhaseLogTest, ARepeatedPhaseGoesOn) {
  Say(Phase::kDirectory, 0);
  Say(Phase::kDirectory, 4);
  Say(Phase::kOver, 10);
  ASSERT_EQ(log_.entries().size(), 1u);
  EXPECT_EQ(log_.entries()[0].length, Microseconds(10));
}

TEST_F(PhaseLogTest, PhasesWithoutRoomAreCountedAndStillInTheTotals) {
  PhaseLog small(1);
  Say(Phase::kDirectory, 0, 1, 1, &small);
  Say(Phase::kData, 1, 1, 1, &small);
  Say(Phase::kOver, 3, 1, 1, &small);
  EXPECT_EQ(small.entries().size(), 1u);
  EXPECT_EQ(small.dropped(), 1u);
  EXPECT_EQ(Of(small.TakeTotals(), Phase::kData), Microseconds(2));
}

TEST_F(PhaseLogTest, ALogMayHaveAClockOfItsOwn) {
  Time now = Time() + Seconds(5);
  PhaseLog log(10, [&now] { return now; });
  Say(Phase::kDirectory, 1, 1, 1, &log);
  now = now + Microseconds(7);
  Say(Phase::kOver, 1, 1, 1, &log);
  ASSERT_EQ(log.entries().size(), 1u);
  EXPECT_EQ(log.entries()[0].begin, Time() + Seconds(5));
  EXPECT_EQ(log.entries()[0].length, Microseconds(7));
}

TEST_F(PhaseLogTest, TheFileIsJsonWithBothEndsOfEachPhase) {
  Say(Phase::kDirectory, 10, 3, 2);
  Say(Phase::kCopy, 12, 3, 2);
  Say(Phase::kOver, 13, 3, 2);
  std::ostringstream out;
  log_.WriteTraceEvents(out);
  const nlohmann::json file = nlohmann::json::parse(out.str());
  const auto& events = file["traceEvents"];
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["name"], "directory");
  EXPECT_EQ(events[0]["ph"], "b");
  EXPECT_EQ(events[0]["ts"], 10.0);
  EXPECT_EQ(events[1]["ph"], "e");
  EXPECT_EQ(events[1]["ts"], 12.0);
  EXPECT_EQ(events[2]["name"], "copy");
  for (const auto& event : events) {
    EXPECT_EQ(event["id"], "2.3");
    EXPECT_EQ(event["pid"], 2);
  }
}

TEST_F(PhaseLogTest, AnEmptyFileIsJsonToo) {
  std::ostringstream out;
  log_.WriteTraceEvents(out);
  EXPECT_EQ(nlohmann::json::parse(out.str())["traceEvents"].size(), 0u);
}

}  // namespace
}  // namespace tokamak::base
