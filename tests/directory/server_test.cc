// The server of a directory: whatever it is asked, it answers once, within its size, and keeps
// nothing of an asker that is gone.
#include "lib/directory/remote/server.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/random.h"
#include "tests/directory/remote_fixture.h"

namespace tokamak::directory {
namespace {

class DirectoryServerTest : public RemoteDirectoryTest {
 protected:
  static constexpr SessionName kSession{17, 1};

  static base::Writer Watch(const SessionName& session, bool begins, const std::vector<WatchRequest>& watches,
                            const std::vector<uint64_t>& ended = {}) {
    base::Writer request = BeginRequest(RequestKind::kWatch);
    WriteSession(request, session);
    request.Integer<uint8_t>(begins ? 1 : 0);
    request.Text("");
    request.Integer(static_cast<uint32_t>(ended.size()));
    for (const uint64_t number : ended) request.Integer(number);
    request.Integer(static_cast<uint32_t>(watches.size()));
    for (const WatchRequest& watch : watches) WriteWatch(request, watch);
    return request;
  }
  static base::Writer Poll(const SessionName& session) {
    base::Writer request = BeginRequest(RequestKind::kPoll);
    WriteSession(request, session);
    return request;
  }
  WatchRequest Wait(uint64_t number) { return {number, Id(std::to_string(number)), false, false}; }

  static base::Writer JoinOf(const NodeId& node, uint64_t incarnation = 1) {
    JoinRequest join = Node(node);
    join.node.incarnation = incarnation;
    base::Writer request = BeginRequest(RequestKind::kJoin);
    WriteNode(request, join.node);
    request.Integer(join.lease.picoseconds());
    request.Integer(join.grace.picoseconds());
    request.Integer<uint8_t>(0);
    request.Text("");
    return request;
  }
  static base::Writer LeaveOf(const NodeId& node) {
    base::Writer request = BeginRequest(RequestKind::kLeave);
    request.Text(node);
    request.Integer<uint64_t>(1);
    return request;
  }
  static verbs::Address Host(int number) {
    return *verbs::Address::Parse(absl::StrCat("10.0.", number / 256, ".", number % 256, ":7000"));
  }

  // The status of the reply, or kUnknown where there is none yet.
  absl::Status Asked(const base::Writer& request, const verbs::Address& peer = {}) {
    status_ = absl::UnknownError("no reply yet");
    const auto answer = [this](absl::Span<const uint8_t> reply) {
      base::Reader reader(reply);
      status_ = ReadStatus(reader);
    };
    work_ = server_->Handle(request.bytes(), transport::Reply(answer, peer));
    scheduler_.RunUntil(scheduler_.Now());
    return status_;
  }

  absl::Status status_;
  base::Pending work_;
};

TEST_F(DirectoryServerTest, MalformedRequestsAreRefusedAndHarmNothing) {
  base::Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> request(random.Below(120));
    for (uint8_t& byte : request) byte = random.Chance(0.7) ? 0 : static_cast<uint8_t>(random.Next());
    if (!request.empty()) request[0] = static_cast<uint8_t>(random.Below(11));
    int replies = 0;
    const base::Pending work = server_->Handle(request, [&](absl::Span<const uint8_t> reply) {
      ++replies;
      base::Reader reader(reply);
      ReadStatus(reader).IgnoreError();
      EXPECT_TRUE(reader.ok());
    });
    scheduler_.RunFor(kPollTurn);
    ASSERT_EQ(replies, 1);
  }
  EXPECT_TRUE(Join("still-alive").ok());
}

TEST_F(DirectoryServerTest, AnEndlessLeaseOrGraceIsRefused) {
  for (base::Duration JoinRequest::*time : {&JoinRequest::lease, &JoinRequest::grace}) {
    JoinRequest request = Node("a");
    request.*time = base::Seconds(1'000'000);
    const auto joined = Answered<absl::StatusOr<JoinReply>>(
        [&](auto done) { return remote_.Join(request, kDeadline, std::move(done)); });
    EXPECT_TRUE(absl::IsInvalidArgument(joined.status())) << joined.status();
  }
}

TEST_F(DirectoryServerTest, ARequestThatNamesTooManyIsRefused) {
  std::vector<WatchRequest> many(kMaxWatched + 1, Wait(1));
  EXPECT_TRUE(absl::IsInvalidArgument(Asked(Watch(kSession, true, many))));
  EXPECT_TRUE(absl::IsInvalidArgument(Asked(Watch(kSession, true, {}, std::vector<uint64_t>(kMaxWatched + 1)))));
  EXPECT_EQ(server_->sessions(), 0u);
}

TEST_F(DirectoryServerTest, AVerifiedObjectHasAGeneration) {
  ASSERT_TRUE(Join("a").ok());
  for (const base::Generation generation : {base::Generation{7}, base::kNoGeneration}) {
    base::Writer request = BeginRequest(RequestKind::kVerify);
    request.Text("a");
    request.Integer<uint32_t>(1);
    WriteVersion(request, {Id("x"), generation});
    EXPECT_EQ(Asked(request).ok(), generation != base::kNoGeneration);
  }
}

TEST_F(DirectoryServerTest, AnUnknownSessionIsRefused) {
  EXPECT_TRUE(absl::IsAborted(Asked(Watch(kSession, false, {Wait(1)}))));
  EXPECT_TRUE(absl::IsAborted(Asked(Poll(kSession))));
  EXPECT_TRUE(Asked(Watch(kSession, true, {Wait(1)})).ok());
  EXPECT_TRUE(Asked(Watch(kSession, false, {Wait(2)})).ok());
  EXPECT_TRUE(absl::IsAborted(Asked(Poll({kSession.asker, 2}))));
  EXPECT_TRUE(Asked(Watch({kSession.asker, 2}, true, {Wait(1)})).ok()) << "a later one takes its place";
  EXPECT_EQ(local_.waiting(), 1u);
  EXPECT_FALSE(Asked(Watch(kSession, true, {Wait(3)})).ok()) << "a request that comes too late";
  EXPECT_EQ(local_.waiting(), 1u);
}

TEST_F(DirectoryServerTest, ASessionThatDoesNotAskEndsAfterSomeTime) {
  EXPECT_TRUE(Asked(Watch(kSession, true, {Wait(1), Wait(2)})).ok());
  for (int i = 0; i < 5; ++i) {
    scheduler_.RunFor(DirectoryServer::kSessionSilence / 2);
    EXPECT_TRUE(absl::IsUnknown(Asked(Poll(kSession)))) << "held";
  }
  EXPECT_EQ(local_.waiting(), 2u);
  scheduler_.RunFor(DirectoryServer::kSessionSilence);
  EXPECT_EQ(local_.waiting(), 0u);
  EXPECT_EQ(server_->sessions(), 0u);
}

TEST_F(DirectoryServerTest, APollEndsAfterItsTurnOrWithTheNextOrWhenItIsDropped) {
  EXPECT_TRUE(Asked(Watch(kSession, true, {Wait(1)})).ok());
  EXPECT_TRUE(absl::IsUnknown(Asked(Poll(kSession))));
  scheduler_.RunFor(kPollTurn - base::Microseconds(1));
  EXPECT_TRUE(absl::IsUnknown(status_));
  scheduler_.RunFor(base::Microseconds(1));
  EXPECT_TRUE(status_.ok()) << status_;
  bool first_ended = false;
  const base::Pending first =
      server_->Handle(Poll(kSession).bytes(), [&](absl::Span<const uint8_t>) { first_ended = true; });
  EXPECT_TRUE(absl::IsUnknown(Asked(Poll(kSession))));
  EXPECT_TRUE(first_ended);
  work_.reset();
  scheduler_.RunFor(kPollTurn);
  EXPECT_TRUE(absl::IsUnknown(status_));
  EXPECT_EQ(local_.waiting(), 1u) << "the session goes on";
}

TEST_F(DirectoryServerTest, OneAskersWatchesAreBounded) {
  uint64_t number = 0;
  absl::Status status;
  for (bool begins = true; status.ok() && number <= kMaxWaitsOfPeer; begins = false) {
    std::vector<WatchRequest> watches;
    for (size_t i = 0; i < kMaxWatched; ++i) watches.push_back(Wait(++number));
    status = Asked(Watch(kSession, begins, watches));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(local_.waiting(), kMaxWaitsOfPeer);
  EXPECT_TRUE(Asked(Watch({18, 1}, true, {Wait(1)})).ok()) << "others have room";
  EXPECT_EQ(local_.waiting(), kMaxWaitsOfPeer + 1);
}

TEST_F(DirectoryServerTest, SessionsAreBounded) {
  for (uint64_t asker = 0; asker < DirectoryServer::kMaxSessions; ++asker) {
    ASSERT_TRUE(Asked(Watch({asker, 1}, true, {}), Host(static_cast<int>(asker))).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Asked(Watch({UINT64_MAX, 1}, true, {}))));
  EXPECT_TRUE(Asked(Watch({7, 2}, true, {})).ok());
  scheduler_.RunFor(DirectoryServer::kSessionSilence);
  EXPECT_TRUE(Asked(Watch({UINT64_MAX, 1}, true, {})).ok());
}

TEST_F(DirectoryServerTest, AHostAtItsBoundLeavesSessionsToOthers) {
  uint64_t asker = 0;
  while (Asked(Watch({asker, 1}, true, {}), Host(1)).ok()) ++asker;
  EXPECT_EQ(asker, DirectoryServer::kMaxSessions / 2);
  EXPECT_TRUE(absl::IsResourceExhausted(status_)) << status_;
  EXPECT_TRUE(Asked(Watch({UINT64_MAX, 1}, true, {}), Host(2)).ok());
}

TEST_F(DirectoryServerTest, AHostAtItsBoundLeavesWaitsToOthers) {
  LocalOptions options;
  options.waiting = 8;
  LocalDirectory directory(server_loop_, options);
  server_ = std::make_unique<DirectoryServer>(server_loop_, directory, DirectoryServer::kMinReply);
  for (uint64_t asker = 0; asker < 4; ++asker) {
    EXPECT_TRUE(Asked(Watch({asker, 1}, true, {Wait(1)}), Host(1)).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Asked(Watch({4, 1}, true, {Wait(1)}), Host(1)))) << status_;
  EXPECT_TRUE(absl::IsResourceExhausted(Asked(Watch({5, 1}, true, {Wait(1), Wait(2), Wait(3)}), Host(2))));
  EXPECT_TRUE(Asked(Watch({5, 1}, true, {Wait(1), Wait(2)}), Host(2)).ok());
  EXPECT_TRUE(Asked(Watch({0, 1}, false, {}, {1}), Host(1)).ok()) << "it waits for one no longer";
  EXPECT_TRUE(Asked(Watch({5, 1}, false, {Wait(3)}), Host(2)).ok());
  server_.reset();
}

TEST_F(DirectoryServerTest, AHostAtItsBoundLeavesNamesToOthers) {
  size_t names = 0;
  while (Asked(JoinOf(absl::StrCat("n", names)), Host(1)).ok()) ++names;
  EXPECT_EQ(names, kMaxNodes / 2);
  EXPECT_TRUE(absl::IsResourceExhausted(status_)) << status_;
  EXPECT_TRUE(Asked(JoinOf("n0"), Host(1)).ok()) << "it has joined before";
  EXPECT_TRUE(Asked(JoinOf("other"), Host(2)).ok());
  EXPECT_TRUE(Join("our-own").ok());
  EXPECT_TRUE(Asked(LeaveOf("n0"), Host(1)).ok());
  EXPECT_TRUE(Asked(LeaveOf("n1"), Host(1)).ok());
  EXPECT_TRUE(Asked(LeaveOf("n2"), Host(1)).ok());
  EXPECT_TRUE(Asked(JoinOf("one-more"), Host(1)).ok());
}

TEST_F(DirectoryServerTest, ARestartedNodeKeepsThePlaceOfItsEarlierLife) {
  size_t names = 0;
  while (Asked(JoinOf(absl::StrCat("n", names)), Host(1)).ok()) ++names;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Asked(JoinOf(absl::StrCat("other", i)), Host(2 + i)).ok()) << status_;
  ASSERT_FALSE(Asked(JoinOf("one-more"), Host(1)).ok());
  EXPECT_TRUE(Asked(JoinOf("n0", /*incarnation=*/2), Host(1)).ok()) << status_;
  EXPECT_EQ(local_.nodes(), names + 1000);
}

// One with several rails comes from another of its addresses when the first has failed.
TEST_F(DirectoryServerTest, ANodeThatMovesCountsAtItsNewHost) {
  size_t names = 0;
  while (Asked(JoinOf(absl::StrCat("n", names)), Host(1)).ok()) ++names;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Asked(JoinOf(absl::StrCat("n", i)), Host(2)).ok()) << status_;
  EXPECT_EQ(local_.nodes(), names);
  EXPECT_TRUE(Asked(JoinOf("one-more"), Host(1)).ok()) << status_;
}

TEST_F(DirectoryServerTest, AnObjectDeletedBeforeItsReportIsNotReported) {
  ASSERT_TRUE(Join("a").ok());
  EXPECT_TRUE(Asked(Watch(kSession, true, {{1, Id("x"), false, false}})).ok());
  ASSERT_TRUE(Announce("x", "a").ok());
  ASSERT_TRUE(Delete("x").ok());
  EXPECT_TRUE(absl::IsUnknown(Asked(Poll(kSession)))) << "it waits for the next content";
}

// As the call of a peer does: it ends with its reply, and then the work on it is dropped.
TEST_F(DirectoryServerTest, APollMayEndWithItsReplyWhenItsSessionIsReplaced) {
  EXPECT_TRUE(Asked(Watch(kSession, true, {Wait(1)})).ok());
  int ended = 0;
  base::Pending poll;
  {
    const std::shared_ptr<int> ticket(&ended, [&poll](int* count) {
      ++*count;
      poll.reset();
    });
    poll = server_->Handle(Poll(kSession).bytes(), [ticket](absl::Span<const uint8_t>) {});
  }
  EXPECT_TRUE(Asked(Watch({kSession.asker, 2}, true, {Wait(1)})).ok());
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(poll, nullptr);
}

TEST_F(DirectoryServerTest, AServerMayEndWhileItHoldsPolls) {
  EXPECT_TRUE(Asked(Watch(kSession, true, {Wait(1)})).ok());
  EXPECT_TRUE(absl::IsUnknown(Asked(Poll(kSession))));
  server_.reset();
  EXPECT_EQ(local_.waiting(), 0u);
  scheduler_.RunFor(base::Seconds(60));
  work_.reset();
  EXPECT_TRUE(absl::IsUnknown(status_));
}

}  // namespace
}  // namespace tokamak::directory
