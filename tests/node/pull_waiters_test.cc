// Each waiter hears of the end once, or of nothing more; the last one that goes is noticed.
#include "lib/node/pulls/pull_waiters.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::node {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PullWaitersTest : public testing::Test, public PullWaiters::Owner {
 protected:
  static constexpr base::Generation kWanted{7};
  static constexpr base::Generation kOther{8};

  std::unique_ptr<PullWaiter> Add(int name, base::Generation once = base::kNoGeneration) {
    return waiters_->Add(once, [this, name](const absl::Status& status) { told_.emplace_back(name, status.code()); });
  }

  void OnNobodyWaits() override { ++abandoned_; }
  absl::Status trouble() const override { return absl::UnavailableError("trouble"); }

  int abandoned_ = 0;
  std::vector<std::pair<int, absl::StatusCode>> told_;
  std::unique_ptr<PullWaiters> waiters_ = std::make_unique<PullWaiters>(*this);
};

constexpr auto kOkCode = absl::StatusCode::kOk;
constexpr auto kGone = absl::StatusCode::kNotFound;

TEST_F(PullWaitersTest, AllHearOfTheEndInTheirOrderAndOfTheWayTheObjectCame) {
  const auto one = Add(1), two = Add(2);
  waiters_->TellAll(absl::OkStatus(), Via::kRead);
  EXPECT_THAT(told_, ElementsAre(std::pair(1, kOkCode), std::pair(2, kOkCode)));
  EXPECT_EQ(one->via(), Via::kRead);
  EXPECT_TRUE(waiters_->empty());
  EXPECT_EQ(abandoned_, 0);
}

TEST_F(PullWaitersTest, ADroppedOneHearsNothingAndTheLastIsNoticed) {
  auto one = Add(1), two = Add(2);
  one.reset();
  EXPECT_EQ(abandoned_, 0);
  two.reset();
  EXPECT_EQ(abandoned_, 1);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(PullWaitersTest, OneMayDropTheNextWhenItHears) {
  std::unique_ptr<PullWaiter> two;
  const auto one = waiters_->Add(base::kNoGeneration, [&two](const absl::Status&) { two.reset(); });
  two = Add(2);
  waiters_->TellAll(absl::OkStatus(), Via::kRead);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(PullWaitersTest, OnlyWhoDoesNotWaitHearsOfAnObstacle) {
  const auto waits = Add(1), once = Add(2, kOther), wanted = Add(3, kWanted);
  EXPECT_TRUE(waiters_->TellWhoDoesNotWait(kGone, "gone", kWanted));
  EXPECT_THAT(told_, ElementsAre(std::pair(2, kGone)));
  EXPECT_FALSE(waiters_->empty());
}

TEST_F(PullWaitersTest, TheLastOneThatDoesNotWaitStaysForTheEnd) {
  const auto once = Add(1, kWanted), other = Add(2, kOther);
  EXPECT_FALSE(waiters_->TellWhoDoesNotWait(kGone, "gone", base::kNoGeneration));
  EXPECT_THAT(told_, ElementsAre(std::pair(1, kGone)));
  waiters_->TellAll(absl::NotFoundError("gone"), Via::kLocal);
  EXPECT_THAT(told_, ElementsAre(std::pair(1, kGone), std::pair(2, kGone)));
}

TEST_F(PullWaitersTest, WhileItWaitsOneSeesTheTroubleOfThePull) {
  const auto one = Add(1);
  EXPECT_EQ(one->trouble().message(), "trouble");
  waiters_->TellAll(absl::OkStatus(), Via::kRead);
  EXPECT_TRUE(one->trouble().ok());
}

TEST_F(PullWaitersTest, WaitersMayOutliveTheList) {
  auto one = Add(1);
  waiters_.reset();
  EXPECT_TRUE(one->trouble().ok());
  one.reset();
  EXPECT_EQ(abandoned_, 0);
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace tokamak::node
