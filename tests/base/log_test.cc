// LOG and CHECK: lines, levels, what is evaluated, and how the process ends.
#include "lib/base/log.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/check.h"

namespace tokamak::base {
namespace {

// Keeps lines as "severity file: text" while it lives.
class KeptLines final : public LogSink {
 public:
  KeptLines() : before_(SetLogSink(this)) {}
  ~KeptLines() override {
    SetLogSink(before_);
    SetLogLevel(Severity::kInfo);
  }

  void Write(const LogLine& line) override {
    lines.push_back(std::string(ToString(line.severity)) + " " + line.file + ": " + std::string(line.text));
    number = line.line;
  }

  std::vector<std::string> lines;
  int number = 0;  // of the source's line that logged last

 private:
  LogSink* const before_;
};

using Lines = std::vector<std::string>;

TEST(LogTest, ALineHasItsSeverityItsPlaceAndItsText) {
  KeptLines log;
  const int here = __LINE__ + 1;
  LOG(WARNING) << "rail " << 2 << " is gone";
  EXPECT_EQ(log.lines, Lines{"warning log_test.cc: rail 2 is gone"});
  EXPECT_EQ(log.number, here);
}

TEST(LogTest, DebugIsLeftOutUnlessAskedFor) {
  KeptLines log;
  LOG(DEBUG) << "unseen";
  SetLogLevel(Severity::kDebug);
  LOG(DEBUG) << "seen";
  SetLogLevel(Severity::kError);
  LOG(WARNING) << "below";
  LOG(ERROR) << "above";
  EXPECT_EQ(log.lines, (Lines{"debug log_test.cc: seen", "error log_test.cc: above"}));
}

TEST(LogTest, NothingIsEvaluatedForALineThatIsLeftOut) {
  KeptLines log;
  int evaluated = 0;
  LOG(DEBUG) << ++evaluated;
  LOG_IF(ERROR, false) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
  LOG_IF(ERROR, true) << ++evaluated;
  EXPECT_EQ(log.lines, Lines{"error log_test.cc: 1"});
}

TEST(LogTest, TheErrorOfTheSystemStandsAtTheEnd) {
  KeptLines log;
  errno = ENOENT;
  PLOG(ERROR) << "open";
  EXPECT_EQ(log.lines, Lines{"error log_test.cc: open: No such file or directory"});
}

TEST(LogTest, TheFirstOfEachHundredIsLogged) {
  KeptLines log;
  for (int i = 0; i < 201; ++i) LOG_EVERY_N(INFO, 100) << i;
  for (int i = 0; i < 201; ++i) LOG_IF_EVERY_N(INFO, i % 2 == 1, 100) << i;  // counts those that are true
  EXPECT_EQ(log.lines,
            (Lines{"info log_test.cc: 0", "info log_test.cc: 100", "info log_test.cc: 200", "info log_test.cc: 1"}));
}

TEST(LogTest, WithoutASinkALineGoesToStandardError) {
  testing::internal::CaptureStderr();
  LOG(INFO) << "plain";
  EXPECT_EQ(testing::internal::GetCapturedStderr().substr(0, 14), "I log_test.cc:");
}

TEST(CheckTest, AKeptLawEvaluatesItsOperandsOnceAndItsReasonNever) {
  int operands = 0;
  int reasons = 0;
  CHECK(++operands == 1) << ++reasons;
  CHECK_EQ(++operands, 2) << ++reasons;
  CHECK_LT(++operands, 4) << ++reasons;
  EXPECT_EQ(operands, 3);
  EXPECT_EQ(reasons, 0);
}

TEST(CheckTest, AnElseBelongsToTheIfBeforeTheCheck) {
  bool otherwise = false;
  if (false)
    CHECK_EQ(1, 1);
  else
    otherwise = true;
  EXPECT_TRUE(otherwise);
}

TEST(CheckTest, NotNullGivesThePointer) {
  int value = 7;
  EXPECT_EQ(CHECK_NOTNULL(&value), &value);
}

TEST(CheckDeathTest, ABrokenLawNamesItselfItsValuesAndTheReason) {
  const std::vector<int> empty;
  const uint8_t byte = 65;
  EXPECT_DEATH(CHECK(!empty.empty()) << "of the test",
               "log_test.cc:[0-9]+\\] Check failed: !empty.empty\\(\\) of the test");
  EXPECT_DEATH(CHECK_EQ(empty.size(), 1u) << "so", "Check failed: empty.size\\(\\) == 1u \\(0 vs. 1\\) so");
  EXPECT_DEATH(CHECK_GE(1, 2), "Check failed: 1 >= 2 \\(1 vs. 2\\)");
  EXPECT_DEATH(CHECK_NE(byte, uint8_t{65}), "\\(65 vs. 65\\)");
  int* const none = nullptr;
  EXPECT_DEATH(static_cast<void>(CHECK_NOTNULL(none)), "Check failed: none != nullptr");
  EXPECT_DEATH(
      {
        errno = EBADF;
        PCHECK(none != nullptr) << "close";
      },
      "Check failed: none != nullptr close: Bad file descriptor");
}

TEST(CheckDeathTest, TheSinkGetsTheLastLine) {
  class Loud final : public LogSink {
    void Write(const LogLine& line) override {
      std::fprintf(stderr, "sink: %s %d", std::string(line.text).c_str(), line.severity == Severity::kFatal);
    }
  } loud;
  EXPECT_DEATH(
      {
        SetLogSink(&loud);
        SetLogLevel(Severity::kFatal);
        CHECK(false) << "at last";
      },
      "sink: Check failed: false at last 1");
}

}  // namespace
}  // namespace tokamak::base
