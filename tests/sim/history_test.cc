#include "sim/worlds/history.h"

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

TEST_F(HistoryTest, AHistoryAsPromisedIsNoViolation) {
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

TEST_F(HistoryTest, AContentThatReturnsWithAGivenUpNodeMayBeReadAgain) {
  Put(1, 10, 0);
  Put(2, 11, 2);
  Get(3, 10, 4);
  Get(3, 11, 6);
  history_.Lost(1, 5);
  Get(4, 10, 8);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(HistoryTest, AContentReadOnlyByItsCreatorMayLose) {
  Put(1, 10, 0);
  Put(2, 11, 2);
  Get(2, 11, 3);
  Get(3, 10, 4);
  Get(2, 11, 5);
  Get(2, 10, 8);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(HistoryTest, AReadOfNoPutIsFound) {
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

TEST_F(HistoryTest, ALostPutIsFound) {
  Put(1, 10, 0);
  LastGet(1, 0);
  LastGet(2, 0);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("not kept: ")));
}

TEST_F(HistoryTest, AnObjectLostWithItsNodeOrDeletedNeedNotBeKept) {
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

TEST_F(HistoryTest, AnAnswerThatTheContractDoesNotListIsFound) {
  history_.Begin({Kind::kGet, Outcome::kWrong, "x", 2, 5, 6});
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("not listed: ")));
}

// Its writer notes everything that may excuse a node.
class CompleteHistoryTest : public HistoryTest {
 protected:
  CompleteHistoryTest() { history_.IsComplete(); }
};

TEST_F(CompleteHistoryTest, APutThatIsGoneFromItsNodeIsFound) {
  Put(1, 10, 0);
  Get(1, 0, 2);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("own: ")));
}

TEST_F(CompleteHistoryTest, APutMayBeGoneFromItsNodeOnceDeletedRefusedOrGivenUp) {
  Put(1, 10, 0);
  Delete(2, 2, Outcome::kFailed);
  Get(1, 0, 4);
  Put(1, 11, 5);
  history_.Refused("x", 11, 7);
  Put(2, 13, 7);
  Get(1, 0, 8);
  history_.Lost(2, 8);
  Get(2, 0, 9);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, ADeletionThatFailedWithUnknownEffectMayActLater) {
  Delete(2, 0, Outcome::kFailed);
  Put(1, 10, 2);
  Get(1, 0, 4);
  EXPECT_THAT(Violations(), IsEmpty());
  history_.MarkDecided(0);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("own: ")));
}

TEST_F(CompleteHistoryTest, APutRefusedForADeletedObjectIsFound) {
  Put(1, 10, 0, Outcome::kOk, true);
  Put(2, 11, 1, Outcome::kRefused, true);
  Delete(3, 4);
  EXPECT_THAT(Violations(), IsEmpty());
  Put(2, 12, 6, Outcome::kRefused, true);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("free: ")));
}

TEST_F(CompleteHistoryTest, APutMayBeRefusedForAnObjectThatMayNotBeDeleted) {
  Put(1, 10, 0);
  Delete(3, 4);  // before anybody else had seen it
  Put(2, 12, 6, Outcome::kRefused, true);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, TwoConfirmedPutsOfOneIdAreFound) {
  Put(1, 10, 0, Outcome::kOk, true);
  Delete(3, 4);
  Put(2, 11, 6, Outcome::kOk, true);
  EXPECT_THAT(Violations(), IsEmpty());
  Put(3, 12, 8, Outcome::kOk, true);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("two: ")));
}

TEST_F(CompleteHistoryTest, APatientGetFindsAConfirmedObjectInACalmLife) {
  Put(1, 10, 0, Outcome::kOk, true);
  history_.Begin({Kind::kGet, Outcome::kNothing, "x", 2, 5, 105});
  EXPECT_THAT(Violations(), IsEmpty());
  history_.IsCalm(100);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("seen: ")));
}

TEST_F(CompleteHistoryTest, AnUnreadLastPutAtTheEndIsFound) {
  Put(1, 10, 0);
  Get(2, 10, 2);
  Delete(2, 4);
  Put(1, 11, 6);
  LastGet(1, 0);
  LastGet(2, 0);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("not kept: "), HasSubstr("own: ")));
}

TEST_F(CompleteHistoryTest, ADeletionThatMissesAStandingObjectIsFound) {
  Put(1, 10, 0, Outcome::kOk, true);
  Delete(3, 4, Outcome::kNothing);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("found: ")));
}

TEST_F(CompleteHistoryTest, ADeletionMayMissUnconfirmedDeletedOrLostObjects) {
  Put(1, 10, 0);
  Delete(3, 2, Outcome::kNothing);  // no client learned that it is known
  Put(2, 11, 4, Outcome::kOk, true);
  Delete(3, 6);
  Delete(2, 6, Outcome::kNothing);  // the other was faster
  Put(2, 12, 8, Outcome::kOk, true);
  history_.Lost(2, 9);
  Delete(3, 10, Outcome::kNothing);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, AForgetfulDirectoryFindsEarlierObjectsOrReportsThatItLearns) {
  Put(1, 10, 0, Outcome::kOk, true);
  history_.DirectoryForgot(4, 5);
  Delete(3, 6, Outcome::kFailed);
  history_.MarkUndone(1);
  EXPECT_THAT(Violations(), IsEmpty());
  Delete(3, 8, Outcome::kNothing);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("found: ")));
  history_.WasCutOff(1);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, APutWhileTheDirectoryLearnsMayLoseButNotAnOlderOne) {
  Put(1, 10, 0, Outcome::kOk, true);
  history_.DirectoryForgot(4, 5);
  Put(2, 11, 6, Outcome::kOk, true);
  history_.DirectoryKnows(10);
  Get(2, 10, 12);
  LastGet(1, 10);
  LastGet(2, 10);
  EXPECT_THAT(Violations(), IsEmpty());
  Get(1, 0, 14);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("own: ")));
}

TEST_F(CompleteHistoryTest, APutMayLoseItsIdToTheContentOfAReturningNode) {
  Put(1, 10, 0, Outcome::kOk, true);
  history_.DirectoryForgot(4, 5);
  history_.DirectoryKnows(8);
  Put(2, 11, 10, Outcome::kOk, true);
  Get(2, 10, 12);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("own: "), HasSubstr("two: ")));
  history_.WasCutOff(1);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, ANodeCutOffWhileTheDirectoryForgotMayReadAReplacedContent) {
  Put(1, 10, 0, Outcome::kOk, true);
  Get(2, 10, 2);
  history_.DirectoryForgot(4, 5);
  history_.DirectoryKnows(8);
  Put(3, 11, 10, Outcome::kOk, true);
  Get(4, 11, 12);
  Get(2, 10, 14);
  Get(4, 11, 16);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("one content: "), HasSubstr("one content: "), HasSubstr("two: ")));
  history_.WasCutOff(2);
  history_.WasCutOff(1);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, ASecondConfirmedPutIsFoundOnceTheDirectoryKnowsEverything) {
  Put(1, 10, 0, Outcome::kOk, true);
  history_.DirectoryForgot(4, 5);
  history_.DirectoryKnows(10);
  Put(2, 11, 12, Outcome::kOk, true);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("two: ")));
}

TEST_F(CompleteHistoryTest, APutThatFailedHoldsItsIdNoMoreOnceItsNodeHasToldAll) {
  Put(1, 10, 0, Outcome::kFailed, true);
  Put(2, 11, 4, Outcome::kRefused, true);
  history_.HasToldAll(2, 6);
  EXPECT_THAT(Violations(), IsEmpty());
  Put(2, 12, 8, Outcome::kRefused, true);
  EXPECT_THAT(Violations(), IsEmpty());
  history_.HasToldAll(1, 6);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("free: ")));
}

TEST_F(CompleteHistoryTest, APutMayBeRefusedForAnObjectMissedByADeletionWhileTheDirectoryLearned) {
  Put(1, 10, 2, Outcome::kOk, true);
  history_.DirectoryForgot(1, 5);
  Put(2, 11, 6, Outcome::kOk, true);
  Delete(2, 8);  // means that of node 2
  history_.DirectoryKnows(10);
  Put(2, 12, 12, Outcome::kRefused, true);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, APutMayBeRefusedForAnObjectGivenUpWhenItsIdWasDeleted) {
  Put(1, 10, 0, Outcome::kOk, true);
  history_.Lost(1, 2);
  Put(2, 11, 4, Outcome::kOk, true);
  Delete(3, 6);  // means that of node 2
  Put(2, 12, 8, Outcome::kRefused, true);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, APutOnANodeThatLeftInOrderIsKeptElsewhere) {
  Put(1, 10, 0);
  history_.Left(1, 4, 6);
  Get(1, 0, 8);  // it asked no other node
  LastGet(1, 10);
  LastGet(2, 10);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, ALossByAnOrderlyLeaveIsFoundUnlessAnotherNodeWasLost) {
  Put(1, 10, 0);
  history_.Left(1, 4, 6);
  history_.Lost(1, 8);  // a later life
  LastGet(2, 0);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("not kept: ")));
  history_.Lost(3, 8);
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(CompleteHistoryTest, ANodeCutOffWhileTheDirectoryForgotMayReadADeletedObject) {
  Put(1, 10, 0);
  Get(2, 10, 2);
  history_.DirectoryForgot(4, 5);
  history_.DirectoryKnows(8);
  Delete(3, 10);
  Get(2, 10, 12);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("deleted: ")));
  history_.WasCutOff(2);
  EXPECT_THAT(Violations(), IsEmpty());
}

}  // namespace
}  // namespace tokamak::sim
