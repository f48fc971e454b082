#include "lib/verbs/soft/cm/connection_state.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

using base::Duration;
using base::Milliseconds;
using base::Seconds;
using ::testing::HasSubstr;
using Kind = ConnectionEvent::Kind;
using Phase = ConnectionPhase;
using Walk = ConnectionActions::Walk;

Address Host(uint8_t last, uint16_t port) {
  Address address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
  address.port = port;
  return address;
}

template <typename Body>
const Body& As(const std::optional<Mad>& mad) {
  EXPECT_TRUE(mad.has_value());
  return std::get<Body>(mad->body);
}

// An active connection with ID 11 and queue pair 101, a passive one with ID 22 and queue pair 202.
class ConnectionStateTest : public ::testing::Test {
 protected:
  static ConnectionOffer Offer(uint32_t queue_pair) {
    ConnectionOffer offer;
    offer.queue_pair = queue_pair;
    offer.receive_psn = queue_pair * 10;
    return offer;
  }

  void MakePassive() {
    const Mad req = *active_.Connect(Offer(101)).send;
    ConnectionState::Identity identity;
    identity.local = Host(2, 7000);
    identity.peer = Host(1, 40000);
    identity.ca_guid = 2;
    identity.local_id = 22;
    identity.transaction = req.transaction;
    passive_.emplace(identity, std::get<ReqMad>(req.body));
    passive_->Begin();
  }

  void Establish() {
    MakePassive();
    const ConnectionActions accepted = passive_->Accept(Offer(202));
    const ConnectionActions answered = active_.OnMad(*accepted.send);
    passive_->OnMad(*answered.send);
    ASSERT_EQ(active_.phase(), Phase::kEstablished);
    ASSERT_EQ(passive_->phase(), Phase::kEstablished);
  }

  ConnectionState active_{{Host(1, 40000), Host(2, 7000), 1, 11, 77}};
  std::optional<ConnectionState> passive_;
};

TEST_F(ConnectionStateTest, ConnectAsksForWhatWasOffered) {
  ConnectionOffer offer = Offer(101);
  offer.max_path_mtu = 1024;
  offer.reliability.retry_count = 3;
  offer.reliability.rnr_retry_count = 4;
  offer.reliability.ack_timeout = Milliseconds(67);
  offer.reliability.reads_outstanding = 5;
  offer.reliability.reads_served = 6;
  offer.private_data[0] = 'p';
  const ConnectionActions actions = active_.Connect(offer);
  const ReqMad& req = As<ReqMad>(actions.send);
  EXPECT_EQ(actions.send->transaction, 77u);
  EXPECT_EQ(req.local_id, 11u);
  EXPECT_EQ(req.service_id, ServiceId(PortSpace::kTcp, 7000));
  EXPECT_EQ(req.queue_pair, 101u);
  EXPECT_EQ(req.starting_psn, 1010u);
  EXPECT_EQ(req.mtu_code, 3);
  EXPECT_EQ(req.retry_count, 3);
  EXPECT_EQ(req.rnr_retry_count, 4);
  EXPECT_EQ(req.local_ack_timeout, 14);
  EXPECT_EQ(req.initiator_depth, 5);
  EXPECT_EQ(req.responder_resources, 6);
  EXPECT_EQ(req.local_gid, Host(1, 0).ip);
  EXPECT_EQ(req.remote_gid, Host(2, 0).ip);
  EXPECT_EQ(req.private_data[kIpHeaderSize], 'p');
  EXPECT_EQ(actions.limit_after, offer.deadline);
  EXPECT_TRUE(actions.repeat_after.has_value());
}

TEST_F(ConnectionStateTest, AnswersCarryTheTransactionOfTheQuestion) {
  MakePassive();
  const ConnectionActions rep = passive_->Accept(Offer(202));
  EXPECT_EQ(rep.send->transaction, 77u);
  EXPECT_EQ(active_.OnMad(*rep.send).send->transaction, 77u);
  EXPECT_EQ(passive_->OnMad({5, DreqMad{11, 22, 202}}).send->transaction, 5u);
}

TEST_F(ConnectionStateTest, AcceptIsReadyToReceiveBeforeTheRepLeaves) {
  MakePassive();
  const ConnectionActions actions = passive_->Accept(Offer(202));
  EXPECT_EQ(actions.walk, Walk::kReadyToReceive);
  const RepMad& rep = As<RepMad>(actions.send);
  EXPECT_EQ(rep.local_id, 22u);
  EXPECT_EQ(rep.remote_id, 11u);
  EXPECT_EQ(rep.queue_pair, 202u);
  EXPECT_EQ(rep.starting_psn, 2020u);
  EXPECT_EQ(passive_->attributes().send_psn, 1010u);
  EXPECT_EQ(passive_->attributes().receive_psn, 2020u);
  EXPECT_EQ(passive_->attributes().peer_number, 101u);
}

TEST_F(ConnectionStateTest, TheRepMakesTheActiveSideReadyAndTheRtuThePassive) {
  MakePassive();
  const ConnectionActions rep = passive_->Accept(Offer(202));
  const ConnectionActions actions = active_.OnMad(*rep.send);
  EXPECT_EQ(actions.walk, Walk::kReadyToSend);
  EXPECT_TRUE(actions.stop_timers);
  EXPECT_FALSE(actions.limit_after.has_value());
  ASSERT_TRUE(actions.news.has_value());
  EXPECT_EQ(actions.news->kind, Kind::kEstablished);
  EXPECT_EQ(actions.news->path_mtu, 4096u);
  EXPECT_EQ(active_.attributes().send_psn, 2020u);
  const ConnectionActions ready = passive_->OnMad(*actions.send);
  EXPECT_EQ(ready.walk, Walk::kReadyToSend);
  EXPECT_EQ(ready.news->kind, Kind::kEstablished);
}

// A side that walks its queue pair itself confirms: only then the peer hears that its REP came.
TEST_F(ConnectionStateTest, ASideThatConfirmsGetsTheRepBeforeThePeerHearsAnything) {
  MakePassive();
  ConnectionOffer offer = Offer(101);
  offer.confirms = true;
  active_ = ConnectionState({Host(1, 40000), Host(2, 7000), 1, 11, 77});
  active_.Connect(offer);
  const ConnectionActions rep = passive_->Accept(Offer(202));
  const ConnectionActions told = active_.OnMad(*rep.send);
  EXPECT_EQ(active_.phase(), Phase::kRepReceived);
  EXPECT_EQ(told.walk, Walk::kStay);
  EXPECT_FALSE(told.send.has_value());
  ASSERT_TRUE(told.news.has_value());
  EXPECT_EQ(told.news->kind, Kind::kEstablished);
  EXPECT_EQ(active_.rep().queue_pair, 202u);
  EXPECT_FALSE(active_.OnMad(*rep.send).send.has_value()) << "a repeated REP";

  const ConnectionActions confirmed = active_.Confirm();
  EXPECT_FALSE(confirmed.news.has_value());
  ASSERT_TRUE(confirmed.send.has_value());
  EXPECT_EQ(passive_->OnMad(*confirmed.send).news->kind, Kind::kEstablished);
  EXPECT_EQ(active_.phase(), Phase::kEstablished);
}

TEST_F(ConnectionStateTest, ASideThatDoesNotConfirmInTimeIsDisconnected) {
  MakePassive();
  ConnectionOffer offer = Offer(101);
  offer.confirms = true;
  active_ = ConnectionState({Host(1, 40000), Host(2, 7000), 1, 11, 77});
  active_.Connect(offer);
  active_.OnMad(*passive_->Accept(Offer(202)).send);
  const ConnectionActions late = active_.OnLimit();
  EXPECT_EQ(late.news->kind, Kind::kUnreachable);
  EXPECT_EQ(passive_->OnMad(*late.send).news->kind, Kind::kDisconnected);
}

TEST_F(ConnectionStateTest, ARepeatedReqGetsTheSameRepAgain) {
  MakePassive();
  EXPECT_FALSE(passive_->OnMad({77, passive_->req()}).send.has_value());
  const Mad rep = *passive_->Accept(Offer(202)).send;
  const ConnectionActions again = passive_->OnMad({77, passive_->req()});
  EXPECT_EQ(EncodeMad(*again.send), EncodeMad(rep));
  EXPECT_EQ(again.walk, Walk::kStay);
}

TEST_F(ConnectionStateTest, ARepeatedReqGetsTheSameRejAgain) {
  MakePassive();
  RejMad rej = MakeRej(passive_->req(), RejectReason::kConsumer);
  rej.private_data[0] = 'n';
  const Mad sent = *passive_->Reject(rej).send;
  EXPECT_EQ(EncodeMad(*passive_->OnMad({77, passive_->req()}).send), EncodeMad(sent));
}

TEST_F(ConnectionStateTest, EachRepeatedRepGetsAnRtu) {
  MakePassive();
  const Mad rep = *passive_->Accept(Offer(202)).send;
  active_.OnMad(rep);
  for (int i = 0; i < 3; ++i) {
    const ConnectionActions actions = active_.OnMad(rep);
    As<RtuMad>(actions.send);
    EXPECT_FALSE(actions.news.has_value());
  }
}

TEST_F(ConnectionStateTest, ARepeatedDreqGetsADrepEachTime) {
  Establish();
  const Mad dreq = *active_.Drop().send;
  const ConnectionActions first = passive_->OnMad(dreq);
  As<DrepMad>(first.send);
  EXPECT_EQ(first.walk, Walk::kError);
  EXPECT_EQ(first.news->kind, Kind::kDisconnected);
  const ConnectionActions second = passive_->OnMad(dreq);
  As<DrepMad>(second.send);
  EXPECT_FALSE(second.news.has_value());
}

TEST_F(ConnectionStateTest, DreqsThatCrossAreBothAnswered) {
  Establish();
  const Mad from_active = *active_.Drop().send;
  const Mad from_passive = *passive_->Drop().send;
  As<DrepMad>(active_.OnMad(from_passive).send);
  As<DrepMad>(passive_->OnMad(from_active).send);
  EXPECT_EQ(active_.phase(), Phase::kTimeWait);
  EXPECT_EQ(passive_->phase(), Phase::kTimeWait);
}

TEST_F(ConnectionStateTest, ADreqForAnotherQueuePairIsIgnored) {
  Establish();
  EXPECT_FALSE(passive_->OnMad({1, DreqMad{11, 22, 203}}).send.has_value());
  EXPECT_EQ(passive_->phase(), Phase::kEstablished);
}

TEST_F(ConnectionStateTest, ASilentPeerIsDeadAfterAllRepetitionsOfTheDreq) {
  Establish();
  active_.Drop();
  for (int i = 0; i < kMaxCmRetries; ++i) As<DreqMad>(active_.OnRepeat().send);
  const ConnectionActions last = active_.OnRepeat();
  EXPECT_FALSE(last.send.has_value());
  EXPECT_EQ(active_.phase(), Phase::kTimeWait);
  active_.OnLimit();
  EXPECT_EQ(active_.phase(), Phase::kClosed);
}

TEST_F(ConnectionStateTest, GivingUpTellsThePeerWhoMayHoldAHalfOpenConnection) {
  MakePassive();
  const ConnectionActions actions = active_.OnLimit();
  EXPECT_EQ(actions.news->kind, Kind::kUnreachable);
  EXPECT_EQ(actions.walk, Walk::kError);
  const RejMad& rej = As<RejMad>(actions.send);
  EXPECT_EQ(rej.reason, RejectReason::kTimeout);
  EXPECT_EQ(rej.information_length, 8);
  EXPECT_EQ(rej.information[7], 1);  // our GUID
  passive_->OnMad(*actions.send);
  EXPECT_EQ(passive_->phase(), Phase::kTimeWait);
}

TEST_F(ConnectionStateTest, AnMraPutsOffTheNextRepetition) {
  active_.Connect(Offer(101));
  MraMad mra;
  mra.service_timeout = 20;  // 4.3 s
  const ConnectionActions actions = active_.OnMad({77, mra});
  ASSERT_TRUE(actions.repeat_after.has_value());
  EXPECT_GT(*actions.repeat_after, Seconds(4));
  EXPECT_FALSE(actions.limit_after.has_value());  // the deadline stands
  mra.answers = MadKind::kRep;
  EXPECT_FALSE(active_.OnMad({77, mra}).repeat_after.has_value());
}

TEST_F(ConnectionStateTest, EachRejOfTheMtuIsFollowedByASmallerRequest) {
  active_.Connect(Offer(101));
  RejMad rej;
  rej.remote_id = 11;
  rej.reason = RejectReason::kInvalidMtu;
  rej.information_length = 1;
  rej.information[0] = 3;
  EXPECT_TRUE(active_.OnMad({77, rej}).ask_again);
  const ConnectionActions again = active_.AskAgain(12, 78);
  EXPECT_EQ(As<ReqMad>(again.send).mtu_code, 3);
  EXPECT_EQ(As<ReqMad>(again.send).local_id, 12u);
  EXPECT_EQ(again.send->transaction, 78u);
  EXPECT_FALSE(again.limit_after.has_value());  // one deadline for all
  const ConnectionActions same = active_.OnMad({78, rej});
  EXPECT_FALSE(same.ask_again);
  EXPECT_EQ(same.news->kind, Kind::kRejected);
}

TEST_F(ConnectionStateTest, ARepWithoutAQueuePairIsIgnored) {
  active_.Connect(Offer(101));
  RepMad rep;
  rep.local_id = 22;
  rep.remote_id = 11;
  EXPECT_FALSE(active_.OnMad({77, rep}).send.has_value());
  EXPECT_EQ(active_.phase(), Phase::kReqSent);
}

TEST_F(ConnectionStateTest, ADreqInsteadOfTheLostRepEndsTheAttempt) {
  MakePassive();
  passive_->Accept(Offer(202));
  const ConnectionActions actions = active_.OnMad(*passive_->Drop().send);
  As<DrepMad>(actions.send);
  EXPECT_EQ(actions.news->kind, Kind::kRejected);
  EXPECT_EQ(active_.phase(), Phase::kTimeWait);
}

TEST_F(ConnectionStateTest, AFailedQueuePairIsNotWalkedAgain) {
  Establish();
  const ConnectionActions actions = active_.OnQueuePairError(absl::AbortedError("retries"));
  EXPECT_EQ(actions.walk, Walk::kStay);
  EXPECT_EQ(actions.news->kind, Kind::kDisconnected);
  EXPECT_THAT(actions.news->status.ToString(), HasSubstr("retries"));
}

TEST_F(ConnectionStateTest, AFailedQueuePairSpeaksFirstAndTheDreqFollows) {
  Establish();
  EXPECT_FALSE(active_.OnQueuePairError(absl::AbortedError("")).send.has_value());
  As<DreqMad>(active_.Drop().send);
  const ConnectionActions actions = passive_->OnQueuePairError(absl::AbortedError(""));
  EXPECT_FALSE(actions.send.has_value());
  ASSERT_TRUE(actions.limit_after.has_value());
  As<DreqMad>(passive_->OnLimit().send);  // the application took its time
}

TEST_F(ConnectionStateTest, AnUnconfirmedMessageIsSentAtMostThreeTimes) {
  MakePassive();
  int sent = passive_->Accept(Offer(202)).send.has_value();
  for (int i = 0; i < kMaxCmRetries; ++i) sent += passive_->OnRepeat().send.has_value();
  EXPECT_EQ(sent, kMaxUnconfirmed);
  EXPECT_TRUE(passive_->OnMad({77, passive_->req()}).send.has_value()) << "who asks again is answered";
  const ConnectionActions over = passive_->OnLimit();
  EXPECT_FALSE(over.send.has_value());
  EXPECT_EQ(over.news->kind, Kind::kUnreachable);
  EXPECT_EQ(passive_->phase(), Phase::kTimeWait);
}

TEST_F(ConnectionStateTest, AnRtuIsRepeatedUntilThePeerIsHeard) {
  active_.Connect(Offer(101));
  RepMad rep;
  rep.local_id = 22;
  rep.queue_pair = 202;
  ConnectionActions actions = active_.OnMad({77, rep});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(actions.repeat_after.has_value());
    actions = active_.OnRepeat();
    EXPECT_EQ(As<RtuMad>(actions.send).remote_id, 22u);
  }
  actions = active_.OnRepeat(/*heard=*/true);
  EXPECT_FALSE(actions.send.has_value());
  EXPECT_FALSE(actions.repeat_after.has_value());
}

TEST_F(ConnectionStateTest, AnRtuIsRepeatedForLongerThanAPeerWaitsForIt) {
  active_.Connect(Offer(101));
  RepMad rep;
  rep.local_id = 22;
  rep.queue_pair = 202;
  Duration waited;
  for (ConnectionActions actions = active_.OnMad({77, rep}); actions.repeat_after; actions = active_.OnRepeat()) {
    waited = waited + *actions.repeat_after;
  }
  EXPECT_GT(waited, ConnectionOffer().deadline + AckTimeout(kFailedCode));
  EXPECT_LT(waited, Seconds(10));
  EXPECT_EQ(active_.phase(), Phase::kEstablished);
  // The effect on a peer that has given up:
  EXPECT_EQ(active_.OnMad(*AnswerForUnknown({77, RtuMad{11, 22}})).news->kind, Kind::kDisconnected);
}

TEST_F(ConnectionStateTest, AnRtuThatComesTooLateStillConfirms) {
  MakePassive();
  passive_->Accept(Offer(202));
  passive_->Drop();
  passive_->OnMad({77, RtuMad{11, 22}});
  int sent = 1;
  while (passive_->phase() == Phase::kDreqSent) sent += passive_->OnRepeat().send.has_value();
  EXPECT_GT(sent, kMaxUnconfirmed);
}

TEST_F(ConnectionStateTest, TheEndOfAnUnconfirmedConnectionCountsToo) {
  MakePassive();
  passive_->Accept(Offer(202));
  int sent = 1 + passive_->Drop().send.has_value();
  while (passive_->phase() == Phase::kDreqSent) sent += passive_->OnRepeat().send.has_value();
  EXPECT_EQ(sent, kMaxUnconfirmed);
}

TEST_F(ConnectionStateTest, ADoubtIsAQuestionThatOnlyAForgetfulPeerAnswers) {
  Establish();
  const ConnectionActions asked = passive_->OnDoubt(991);
  EXPECT_FALSE(asked.news.has_value());
  EXPECT_FALSE(passive_->OnDoubt(992).send.has_value()) << "one question at a time";
  EXPECT_FALSE(active_.OnMad(*asked.send).send.has_value());
  EXPECT_EQ(active_.phase(), Phase::kEstablished);
  EXPECT_FALSE(passive_->OnMad({992, DrepMad{11, 22}}).news.has_value());
  const ConnectionActions answered = passive_->OnMad(*AnswerForUnknown(*asked.send));
  ASSERT_TRUE(answered.news.has_value());
  EXPECT_EQ(answered.news->kind, Kind::kDisconnected);
  EXPECT_EQ(answered.walk, Walk::kError);
}

TEST_F(ConnectionStateTest, AQuestionThatNobodyAnsweredMayBeAskedAgain) {
  Establish();
  const Mad first = *passive_->OnDoubt(991).send;
  EXPECT_FALSE(passive_->OnRepeat().send.has_value());
  EXPECT_EQ(passive_->OnDoubt(992).send->transaction, 992u);
  EXPECT_FALSE(passive_->OnMad(*AnswerForUnknown(first)).news.has_value()) << "too late";
  EXPECT_EQ(passive_->phase(), Phase::kEstablished);
}

TEST_F(ConnectionStateTest, ACookieIsTheTransactionOfTheNextRequestAFewTimes) {
  active_.Connect(Offer(101));
  for (uint64_t i = 0; i < 3; ++i) {
    const ConnectionActions actions = active_.OnMad(MakeCookie(active_.req(), 500 + i));
    EXPECT_TRUE(actions.ask_again);
    EXPECT_EQ(actions.transaction, 500 + i);
    EXPECT_EQ(active_.AskAgain(11, *actions.transaction).send->transaction, 500 + i);
  }
  const ConnectionActions last = active_.OnMad(MakeCookie(active_.req(), 9));
  EXPECT_FALSE(last.ask_again);
  EXPECT_FALSE(last.news.has_value());
  As<ReqMad>(active_.OnRepeat().send);
  EXPECT_THAT(std::string(active_.OnLimit().news->status.message()), HasSubstr("no room"));
}

TEST_F(ConnectionStateTest, TheKernelsRejectionForLackOfRoomEndsTheRequest) {
  active_.Connect(Offer(101));
  const ConnectionActions actions = active_.OnMad({77, MakeRej(active_.req(), RejectReason::kNoResources)});
  EXPECT_FALSE(actions.ask_again);
  EXPECT_TRUE(absl::IsResourceExhausted(actions.news->status));
}

TEST(ConnectionRulesTest, ACookieIsAQuestionThatNamesTheRequestAndNoConnection) {
  ReqMad req;
  req.local_id = 5;
  for (const uint64_t cookie : {uint64_t{0}, uint64_t{1} << 63, uint64_t{0x0123456789abcdef}}) {
    const Mad mad = MakeCookie(req, cookie);
    const DreqMad dreq = std::get<DreqMad>(DecodeMad(EncodeMad(mad))->body);
    EXPECT_EQ(mad.transaction, cookie);
    EXPECT_TRUE(IsQuestion(dreq));
    EXPECT_EQ(dreq.remote_id, 5u);
    EXPECT_NE(dreq.local_id, 0u);
  }
}

TEST(ConnectionRulesTest, RepetitionsSlowDownAndLastUntilTheDeadline) {
  for (const Duration deadline : {Milliseconds(500), Seconds(5), Seconds(30), Seconds(60)}) {
    Duration total;
    Duration last;
    for (int i = 0; i <= kMaxCmRetries; ++i) {
      const Duration delay = RepeatDelay(i, deadline);
      EXPECT_GE(delay, last);
      last = delay;
      total = total + delay;
    }
    EXPECT_GE(total, deadline);
  }
  EXPECT_EQ(RepeatDelay(0, Seconds(5)).milliseconds(), 134);
  EXPECT_EQ(RepeatDelay(1, Seconds(5)).milliseconds(), 268);
  EXPECT_EQ(RepeatDelay(9, Seconds(5)).milliseconds(), 625);
}

TEST(ConnectionRulesTest, EveryReasonHasAnErrorThatNamesThePeer) {
  for (uint16_t reason = 0; reason < 50; ++reason) {
    RejMad rej;
    rej.reason = static_cast<RejectReason>(reason);
    const absl::Status status = StatusOf(rej, Host(2, 7000));
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("10.0.0.2:7000"));
  }
}

TEST(ConnectionRulesTest, DepthsAgreeOnTheSmaller) {
  ReliabilityOptions reliability;
  reliability.reads_outstanding = 16;
  reliability.reads_served = 4;
  AgreeOnReads(/*peer_responder_resources=*/8, /*peer_initiator_depth=*/7, &reliability);
  EXPECT_EQ(reliability.reads_outstanding, 8);
  EXPECT_EQ(reliability.reads_served, 4);
}

}  // namespace
}  // namespace tokamak::verbs::soft
