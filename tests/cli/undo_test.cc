#include "lib/cli/common/undo.h"

#include <gtest/gtest.h>

#include <string>

namespace tokamak::cli {
namespace {

class UndoTest : public testing::Test {
 protected:
  static absl::Status Ok() { return absl::OkStatus(); }
  // A step whose reversal notes `name`.
  absl::Status Do(const std::string& name, const absl::Status& reversed = absl::OkStatus()) {
    return undo_.Do(Ok, [this, name, reversed] {
      reversed_ += name;
      return reversed;
    });
  }

  std::string reversed_;
  Undo undo_;
};

TEST_F(UndoTest, StepsAreReversedTheLastFirst) {
  ASSERT_TRUE(Do("a").ok() && Do("b").ok());
  EXPECT_TRUE(undo_.TakeBack().ok());
  EXPECT_EQ(reversed_, "ba");
  EXPECT_TRUE(undo_.TakeBack().ok());
  EXPECT_EQ(reversed_, "ba");
}

TEST_F(UndoTest, CompletedWorkStays) {
  ASSERT_TRUE(Do("a").ok());
  EXPECT_TRUE(undo_.Complete().ok());
  EXPECT_TRUE(undo_.TakeBack().ok());
  EXPECT_EQ(reversed_, "");
}

TEST_F(UndoTest, AFailedStepIsNotReversedButEarlierOnesAre) {
  ASSERT_TRUE(Do("a").ok());
  const auto fails = [] { return absl::NotFoundError("gone"); };
  EXPECT_TRUE(absl::IsNotFound(undo_.Do(fails, [this] {
    reversed_ += "x";
    return absl::OkStatus();
  })));
  EXPECT_TRUE(absl::IsNotFound(undo_.Complete(fails)));
  EXPECT_TRUE(undo_.TakeBack().ok());
  EXPECT_EQ(reversed_, "a");
}

TEST_F(UndoTest, AFailedReversalIsReportedAndTheOthersRun) {
  ASSERT_TRUE(Do("a").ok() && Do("b", absl::PermissionDeniedError("no")).ok() && Do("c").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(undo_.TakeBack()));
  EXPECT_EQ(reversed_, "cba");
}

TEST_F(UndoTest, OtherReversalsAreNotTriedOnceTheDaemonIsGone) {
  ASSERT_TRUE(Do("a").ok() && Do("b", absl::UnavailableError("gone")).ok() && Do("c").ok());
  EXPECT_TRUE(absl::IsUnavailable(undo_.TakeBack()));
  EXPECT_EQ(reversed_, "cb");
}

TEST_F(UndoTest, NothingIsDoneAfterAnInterruption) {
  ASSERT_TRUE(Do("a").ok());
  EXPECT_TRUE(undo_.Interrupt().ok());
  EXPECT_EQ(reversed_, "a");
  bool ran = false;
  const auto step = [&] {
    ran = true;
    return absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsCancelled(undo_.Do(step, Ok)));
  EXPECT_TRUE(absl::IsCancelled(undo_.Complete(step)));
  EXPECT_FALSE(ran);
}

TEST_F(UndoTest, HalfDoneWorkIsNotForgotten) {
  EXPECT_DEATH(
      {
        Undo undo;
        undo.Do(Ok, Ok).IgnoreError();
      },
      "neither completed nor taken back");
}

}  // namespace
}  // namespace tokamak::cli
