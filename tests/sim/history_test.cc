#include "sim/history.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Operation::Kind;
using Outcome = Operation::Outcome;

class HistoryTest : public testing::Test {
 protected:
  // Each takes from `begin` to `begin + 1`.
  void Put(uint32_t node, uint64_t content, int64_t begin, Outcome outcome = Outcome::kOk, bool confirmed = false) {
    Operation put{Kind::kPut, outcome, "x", node, begin, begin + 1, content};
    put.confirmed = confirmed;
    history_.Begin(put);
  }
  void Get(uint32_t node, uint64_t content, int64_t begin) {
    const Outcome outcome = content == 0 ? Outcome::kNothing : Outcome::kOk;
    history_.Begin({Kind::kGet, outcome, "x", node, begin, begin + 1, content});
  }
  void LastGet(uint32_t node, uint64_t content) {
    Get(node, content, 1000);
    history_.MarkLast(history_.size() - 1);
  }
  void Delete(uint32_t node, int64_t begin, Outcome outcome = Outcome::kOk) {
    history_.Begin({Kind::kDelete, outcome, "x", node, begin, begin + 1});
  }
  std::vector<std::string> Violations() const { return history_.Violations(); }

  History history_;
};

TEST_F(HistoryTest, WhatIsPromisedIsNoViolation) {
  Put(1, 10, 0);
  Get(1, 10, 2);
  Get(2, 10, 4);
  Delete(3, 6);
  Get(2, 0, 8);
  Put(2, 11, 10);
  Get(1, 11, 12);
  LastGet(1, 11);
  LastGet(2, 11);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(HistoryTest, AReadAfterADeletionIsFound) {
  Put(1, 10, 0);
  Get(2, 10, 2);
  Delete(3, 4);
  Get(2, 10, 6);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("deleted: ")));
}

TEST_F(HistoryTest, AReadThatBeganBeforeTheDeletionEndedIsAllowed) {
  Put(1, 10, 0);
  Get(2, 10, 2);
  Delete(3, 4);
  history_.Begin({Kind::kGet, Outcome::kOk, "x", 2, 4, 100, 10});
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(HistoryTest, ADeletionThatPromisedNothingIsNoViolation) {
  Put(1, 10, 0);
  Get(2, 10, 2);
  Delete(3, 4, Outcome::kFailed);
  Get(2, 10, 6);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(HistoryTest, AConfirmedPutIsVisibleToADeletionThoughNobodyReadIt) {
  Put(1, 10, 0, Outcome::kOk, true);
  Delete(3, 4);
  Get(1, 10, 6);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("deleted: ")));
}

TEST_F(HistoryTest, ContentsInTwoOrdersAreFound) {
  Put(1, 10, 0);
  Put(2, 11, 2);
  Get(3, 10, 4);
  Get(3, 11, 6);
  Get(4, 10, 8);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("one content: ")));
}

TEST_F(HistoryTest, WhatOnlyItsCreatorReadsMayLose) {
  Put(1, 10, 0);
  Put(2, 11, 2);
  Get(2, 11, 3);
  Get(3, 10, 4);
  Get(2, 11, 5);
  Get(2, 10, 8);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(HistoryTest, AReadOfWhatNobodyPutIsFound) {
  Put(1, 10, 5);
  Get(2, 12, 7);
  Get(2, 10, 2);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("before it was put"), HasSubstr("never put")));
}

TEST_F(HistoryTest, ARefusedContentThatIsSeenIsFound) {
  Put(1, 10, 0, Outcome::kRefused);
  Get(1, 10, 0);
  EXPECT_THAT(Violations(), IsEmpty());
  Get(2, 10, 0);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("refused: ")));
}

TEST_F(HistoryTest, WhatWasPutAndIsGoneIsFound) {
  Put(1, 10, 0);
  LastGet(1, 0);
  LastGet(2, 0);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("not kept: ")));
}

TEST_F(HistoryTest, WhatWasLostWithItsNodeOrDeletedNeedNotBeKept) {
  Put(1, 10, 0);
  history_.Lost(1, 5);
  LastGet(2, 0);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(HistoryTest, DisagreementAtTheEndIsFound) {
  Put(1, 10, 0);
  Put(2, 11, 2);
  LastGet(1, 10);
  LastGet(2, 11);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("no agreement at the end")));
}

TEST_F(HistoryTest, NoAnswerAtTheEndIsFound) {
  Put(1, 10, 0);
  LastGet(1, 10);
  history_.Begin({Kind::kGet, Outcome::kFailed, "x", 2, 1000, 1001});
  history_.MarkLast(history_.size() - 1);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("no answer at the end")));
}

}  // namespace
}  // namespace tokamak::sim
