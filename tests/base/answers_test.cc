#include "lib/base/answers.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "sim/time/sim_loop.h"

namespace tokamak::base {
namespace {

class AnswersTest : public testing::Test {
 protected:
  Pending Note(int number) {
    return answers_->Add([this, number] { ran_.push_back(number); });
  }
  void Run() { scheduler_.RunUntil(scheduler_.Now() + Seconds(1)); }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  std::unique_ptr<Answers> answers_ = std::make_unique<Answers>(loop_);
  std::vector<int> ran_;
};

TEST_F(AnswersTest, AnswersRunLaterAndInTheOrderAdded) {
  const Pending a = Note(1);
  const Pending b = Note(2);
  EXPECT_TRUE(ran_.empty());
  Run();
  EXPECT_EQ(ran_, (std::vector<int>{1, 2}));
}

TEST_F(AnswersTest, DroppedHandleTakesItsAnswerOut) {
  const Pending a = Note(1);
  Pending b = Note(2);
  b.reset();
  Run();
  EXPECT_EQ(ran_, std::vector<int>{1});
}

TEST_F(AnswersTest, HandleMayBeDroppedInsideItsOwnAnswerAndThatOfAnother) {
  Pending b;
  Pending a = answers_->Add([&] {
    ran_.push_back(1);
    a.reset();
    b.reset();
  });
  b = Note(2);
  const Pending c = Note(3);
  Run();
  EXPECT_EQ(ran_, (std::vector<int>{1, 3}));
}

TEST_F(AnswersTest, AddedInsideAnAnswerRunsToo) {
  Pending b;
  const Pending a = answers_->Add([&] { b = Note(2); });
  Run();
  EXPECT_EQ(ran_, std::vector<int>{2});
}

TEST_F(AnswersTest, AllAnswersAreDroppedWithTheirOwnerAlsoFromInsideOne) {
  const Pending a = answers_->Add([&] { answers_.reset(); });
  Pending b = Note(2);
  Run();
  EXPECT_TRUE(ran_.empty());
  b.reset();  // outlived it: does nothing
}

TEST(LifetimeTest, AWatchReportsThatItsObjectIsGone) {
  auto lifetime = std::make_unique<Lifetime>();
  const Lifetime::Watch watch = lifetime->Watched();
  EXPECT_FALSE(watch.over());
  lifetime.reset();
  EXPECT_TRUE(watch.over());
}

}  // namespace
}  // namespace tokamak::base
