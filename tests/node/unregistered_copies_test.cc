#include "lib/node/copies/unregistered_copies.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "sim/time/sim_loop.h"

namespace tokamak::node {
namespace {

using base::Seconds;

base::ObjectVersion UnregisteredVersion(uint64_t generation) {
  return {base::ObjectId::FromName("x"), base::Generation{generation}};
}

class UnregisteredCopiesTest : public testing::Test {
 protected:
  void Add(uint64_t generation, base::Duration good_for) {
    copies_.Add(UnregisteredVersion(generation), loop_.Now() + good_for);
  }
  void RunFor(base::Duration time) {
    scheduler_.RunUntil([] { return false; }, scheduler_.Now() + time);
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  std::vector<base::ObjectVersion> over_;
  UnregisteredCopies copies_{loop_, [this](const base::ObjectVersion& version) {
                               EXPECT_FALSE(copies_.Contains(version));
                               over_.push_back(version);
                             }};
};

TEST_F(UnregisteredCopiesTest, EachCopyExpiresAtItsOwnTime) {
  Add(1, Seconds(3));
  Add(2, Seconds(1));
  Add(3, Seconds(2));
  RunFor(Seconds(1));
  EXPECT_EQ(over_, std::vector<base::ObjectVersion>{UnregisteredVersion(2)});
  RunFor(Seconds(2));
  EXPECT_EQ(over_,
            (std::vector<base::ObjectVersion>{UnregisteredVersion(2), UnregisteredVersion(3), UnregisteredVersion(1)}));
  EXPECT_TRUE(copies_.empty());
}

// As that of a process that was stopped.
TEST_F(UnregisteredCopiesTest, ALateTimerIsNotAwaited) {
  Add(1, Seconds(1));
  Add(2, Seconds(9));
  const base::Timer task = loop_.Post([this] {
    copies_.EndOverdue();
    EXPECT_TRUE(over_.empty());
    loop_.Spend(Seconds(2));
    EXPECT_TRUE(over_.empty());
    copies_.EndOverdue();
    EXPECT_EQ(over_, std::vector<base::ObjectVersion>{UnregisteredVersion(1)});
  });
  RunFor(Seconds(5));
  EXPECT_EQ(over_.size(), 1u);
}

TEST_F(UnregisteredCopiesTest, ACopyRegisteredInTimeNeverExpires) {
  Add(1, Seconds(1));
  Add(2, Seconds(1));
  copies_.Remove(UnregisteredVersion(1));
  RunFor(Seconds(5));
  EXPECT_EQ(over_, std::vector<base::ObjectVersion>{UnregisteredVersion(2)});
}

TEST_F(UnregisteredCopiesTest, ACopyThatIsVouchedForAgainHasTheNewTime) {
  Add(1, Seconds(1));
  Add(1, Seconds(3));
  EXPECT_EQ(copies_.Until(UnregisteredVersion(1)), loop_.Now() + Seconds(3));
  EXPECT_EQ(copies_.Until(UnregisteredVersion(2)), std::nullopt);
  RunFor(Seconds(2));
  EXPECT_TRUE(over_.empty());
  RunFor(Seconds(1));
  EXPECT_EQ(over_, std::vector<base::ObjectVersion>{UnregisteredVersion(1)});
}

TEST_F(UnregisteredCopiesTest, CopiesCanBeAddedAfterTheFirstExpired) {
  Add(1, Seconds(1));
  RunFor(Seconds(2));
  Add(2, Seconds(1));
  RunFor(Seconds(1));
  EXPECT_EQ(over_, (std::vector<base::ObjectVersion>{UnregisteredVersion(1), UnregisteredVersion(2)}));
}

}  // namespace
}  // namespace tokamak::node
