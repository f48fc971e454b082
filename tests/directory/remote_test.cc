// The remote directory under lost, late and garbled replies; what all directories promise is in
// conformance/.
#include "lib/directory/remote/remote.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "lib/base/random.h"
#include "tests/directory/remote_fixture.h"

namespace tokamak::directory {
namespace {

TEST_F(RemoteDirectoryTest, ALostReplyEndsTheCallAtItsDeadlineThoughTheServerActed) {
  caller_.lose_replies = true;
  const absl::Status status = Join("a").status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(local_.nodes(), 1u);
}

TEST_F(RemoteDirectoryTest, AnErrorNamesTheServerThatDidNotAnswer) {
  caller_.cut = true;
  EXPECT_NE(Join("a").status().message().find("10.0.0.1:7000"), std::string::npos);
}

TEST_F(RemoteDirectoryTest, TheServersAddressMayBecomeKnownLater) {
  RemoteDirectory remote(loop_, caller_, verbs::Address(), base::Random(7));
  const auto join = [&] {
    return Answered<absl::StatusOr<JoinReply>>(
        [&](auto done) { return remote.Join(Node("a"), kDeadline, std::move(done)); });
  };
  const absl::Status unknown = join().status();
  EXPECT_TRUE(absl::IsUnavailable(unknown)) << unknown;
  EXPECT_TRUE(remote.unanswered());
  for (const char* server : {"10.0.0.2:7000", "10.0.0.3:7000"}) {
    remote.MoveTo(*verbs::Address::Parse(server));
    EXPECT_TRUE(join().ok());
    EXPECT_FALSE(remote.unanswered());
    EXPECT_EQ(caller_.last_server().ToString(), server);
  }
  caller_.cut = true;
  EXPECT_FALSE(join().ok());
  EXPECT_TRUE(remote.unanswered());
}

TEST_F(RemoteDirectoryTest, ALateReplyIsNoReply) {
  caller_.one_way = kDeadline;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Join("a").status()));
  scheduler_.RunFor(kDeadline * 4);
}

TEST_F(RemoteDirectoryTest, ManyNodesComeInManyReplies) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Join("n" + std::to_string(i)).ok());
  UseSmallReplies();
  const uint64_t before = caller_.calls();
  const auto nodes = Nodes();
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(nodes->size(), 100u);
  EXPECT_EQ(nodes->front().id, "n0");
  EXPECT_EQ(nodes->back().id, "n99");
  EXPECT_GT(caller_.calls() - before, 10u);
}

TEST_F(RemoteDirectoryTest, AnObjectOfManyHoldersIsLocatedAndDeletedWithSmallReplies) {
  UseSmallReplies();
  for (int i = 0; i < 50; ++i) {
    const NodeId node = std::to_string(10 + i) + NodeId(60, 'n');
    ASSERT_TRUE(Join(node).ok());
    ASSERT_TRUE(Announce("x", node).ok());
  }
  const auto info = Locate("x");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_GE(info->holders.size(), 5u);
  size_t told = 0;
  auto step = Delete("x");
  for (; step.ok() && !step->holders.empty(); step = Delete("x", step->generation, step->holders.back())) {
    told += step->holders.size();
  }
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(told, 50u);
}

TEST_F(RemoteDirectoryTest, VerdictsAndDropsComeInSmallReplies) {
  UseSmallReplies();
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  std::vector<Update> updates;
  std::vector<base::ObjectVersion> versions;
  for (size_t i = 0; i < kMaxUpdates; ++i) updates.push_back(Announcement(std::to_string(i)));
  for (const char* node : {"a", "b"}) {
    const auto statuses = Answered<absl::StatusOr<UpdateStatuses>>(
        [&](auto done) { return remote_.Update(node, {}, updates, kDeadline, std::move(done)); });
    ASSERT_TRUE(statuses.ok()) << statuses.status();
    for (Update& update : updates) update.version.generation = base::Generation{2};
    for (const absl::Status& status : *statuses) EXPECT_EQ(status.ok(), node[0] == 'a') << status;
  }
  for (size_t i = 0; i < kMaxVerified; ++i) versions.push_back({Id(std::to_string(i)), base::Generation{1}});
  const auto unknown = Verify("a", versions);
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  ASSERT_EQ(unknown->size(), kMaxVerified - kMaxUpdates);
  EXPECT_EQ(unknown->front(), kMaxUpdates);
  EXPECT_EQ(unknown->back(), kMaxVerified - 1);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(Delete(std::to_string(i)).ok());
  const auto joined = Join("a");
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_GT(joined->drops.size(), 10u);
}

TEST_F(RemoteDirectoryTest, TheObjectsOfANodeComeInSmallReplies) {
  UseSmallReplies();
  ASSERT_TRUE(Join("a").ok());
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(Announce(std::to_string(i), "a").ok());
  size_t told = 0, pages = 0;
  HeldReply page;
  do {
    auto next = Held("a", page.next);
    ASSERT_TRUE(next.ok()) << next.status();
    page = *std::move(next);
    told += page.versions.size();
    ++pages;
  } while (!page.next.empty());
  EXPECT_EQ(told, 50u);
  EXPECT_GT(pages, 3u);
  EXPECT_TRUE(absl::IsInvalidArgument(Held("a", "no place").status()));
  EXPECT_TRUE(absl::IsNotFound(Held("b").status()));
}

TEST_F(RemoteDirectoryTest, HeldObjectsHaveGenerationsAndTheirPagesGoOn) {
  const auto answer = [this](base::Generation generation, const std::string& next) {
    base::Writer held;
    WriteStatus(held, absl::OkStatus());
    held.Text(next);
    held.Integer<uint32_t>(1);
    WriteVersion(held, {Id("x"), generation});
    AnswerWith({held.bytes().begin(), held.bytes().end()});
    return Held("a", "here").status();
  };
  EXPECT_EQ(answer(base::Generation{7}, "there"), absl::OkStatus());
  EXPECT_EQ(answer(base::Generation{7}, ""), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(answer(base::kNoGeneration, "there")));
  EXPECT_TRUE(absl::IsUnavailable(answer(base::Generation{7}, "here")));
}

TEST_F(RemoteDirectoryTest, AMalformedReplyIsUnavailable) {
  const std::vector<FakeCaller::Bytes> malformed = {
      {},                                              // nothing
      {0},                                             // a status without its text
      {0, 0, 0, 0, 0},                                 // ok, and nothing of what was asked
      {99, 0, 0, 0, 0},                                // a status that does not exist
      {0, 255, 255, 255, 255},                         // a text that is not there
      {0, 0, 0, 0, 0, 1, 255, 255, 0, 0, 1, 1, 1, 1},  // a count of things that are not there
  };
  for (const auto& bytes : malformed) {
    AnswerWith(bytes);
    EXPECT_TRUE(absl::IsUnavailable(Join("a").status()));
    EXPECT_TRUE(absl::IsUnavailable(Announce("x", "a")));
    EXPECT_TRUE(absl::IsUnavailable(Locate("x").status()));
    EXPECT_TRUE(absl::IsUnavailable(Delete("x").status()));
    EXPECT_TRUE(absl::IsUnavailable(Verify("a", {Announcement("x").version}).status()));
    EXPECT_TRUE(absl::IsUnavailable(Held("a").status()));
    EXPECT_TRUE(absl::IsUnavailable(Nodes().status()));
  }
  AnswerWith({0, 0, 0, 0, 0, 7});  // more than was asked
  const absl::Status left = Answered<absl::Status>([&](auto done) { return remote_.Leave("a", 1, kDeadline, done); });
  EXPECT_TRUE(absl::IsUnavailable(left)) << left;
}

TEST_F(RemoteDirectoryTest, AFoundObjectHasAGenerationAndAHolder) {
  const auto answer = [this](LocatedObject object) {
    base::Writer found;
    WriteStatus(found, absl::OkStatus());
    found.Integer<uint32_t>(1);
    WriteLocated(found, object);
    AnswerWith({found.bytes().begin(), found.bytes().end()});
    return Locate("x").status();
  };
  EXPECT_EQ(answer({base::Generation{7}, 1, 2, {"a"}}), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(answer({base::Generation{7}, 1, 2, {}})));
  EXPECT_TRUE(absl::IsUnavailable(answer({base::kNoGeneration, 1, 2, {"a"}})));
}

TEST_F(RemoteDirectoryTest, ANameThatIsNotTheObjectsCountsAsNone) {
  const auto name_of = [this](const char* name) {
    LocatedObject object{base::Generation{7}, 1, 2, {"a"}};
    object.name = *base::ObjectName::For(Id(name), name);
    base::Writer found;
    WriteStatus(found, absl::OkStatus());
    found.Integer<uint32_t>(1);
    WriteLocated(found, object);
    AnswerWith({found.bytes().begin(), found.bytes().end()});
    return std::string(Locate("x")->name.text());
  };
  EXPECT_EQ(name_of("x"), "x");
  EXPECT_EQ(name_of("y"), "");
}

TEST_F(RemoteDirectoryTest, ADropHasAGeneration) {
  for (const base::Generation generation : {base::Generation{7}, base::kNoGeneration}) {
    base::Writer joined;
    WriteStatus(joined, absl::OkStatus());
    joined.Integer<uint8_t>(0);
    joined.Text("mark");
    joined.Text("as of");
    joined.Integer<uint32_t>(1);
    WriteVersion(joined, {Id("x"), generation});
    AnswerWith({joined.bytes().begin(), joined.bytes().end()});
    EXPECT_EQ(Join("a").ok(), generation != base::kNoGeneration);
  }
}

// They are for our log.
TEST_F(RemoteDirectoryTest, TextsOfTheServerHaveNoControlCharacters) {
  base::Writer refused;
  WriteStatus(refused, absl::UnavailableError("no\x1b[2J\nroom"));
  AnswerWith({refused.bytes().begin(), refused.bytes().end()});
  EXPECT_TRUE(absl::StrContains(Join("a").status().message(), "no\\x1b[2J\\x0aroom")) << Join("a").status();
}

TEST_F(RemoteDirectoryTest, AMarkHasABound) {
  for (const size_t size : {kMaxMark, kMaxMark + 1}) {
    for (const auto& [mark, as_of] : {std::make_pair(size, kMaxMark), std::make_pair(kMaxMark, size)}) {
      base::Writer joined;
      WriteStatus(joined, absl::OkStatus());
      joined.Integer<uint8_t>(2);
      joined.Text(std::string(mark, 'm'));
      joined.Text(std::string(as_of, 'n'));
      joined.Integer<uint32_t>(0);
      AnswerWith({joined.bytes().begin(), joined.bytes().end()});
      const absl::StatusOr<JoinReply> reply = Join("a");
      EXPECT_EQ(reply.ok(), size <= kMaxMark);
      if (!reply.ok()) continue;
      EXPECT_EQ(reply->mark, std::string(mark, 'm'));
      EXPECT_EQ(reply->as_of, std::string(as_of, 'n'));
      EXPECT_TRUE(reply->outdated && !reply->entered);
    }
  }
}

TEST_F(RemoteDirectoryTest, AServerThatRepeatsItselfIsNotAskedForEver) {
  base::Writer page;
  WriteStatus(page, absl::OkStatus());
  page.Integer<uint8_t>(1);  // more to come
  page.Integer<uint32_t>(1);
  WriteRosterEntry(page, {Node("a").node, Liveness::kAlive, base::Seconds(1)});
  AnswerWith({page.bytes().begin(), page.bytes().end()});
  EXPECT_TRUE(absl::IsUnavailable(Nodes().status()));
  EXPECT_LE(caller_.calls(), 2u);
  base::Writer looked_at_none;
  WriteStatus(looked_at_none, absl::OkStatus());
  looked_at_none.Integer<uint64_t>(0);
  AnswerWith({looked_at_none.bytes().begin(), looked_at_none.bytes().end()});
  EXPECT_TRUE(absl::IsUnavailable(Verify("a", {Announcement("x").version}).status()));
}

TEST_F(RemoteDirectoryTest, ANodeIsAliveOrSilentSinceATimeInThePast) {
  const auto answer = [this](Liveness liveness, base::Duration unheard_for) {
    base::Writer page;
    WriteStatus(page, absl::OkStatus());
    page.Integer<uint8_t>(0);
    page.Integer<uint32_t>(1);
    WriteRosterEntry(page, {Node("a").node, liveness, unheard_for});
    AnswerWith({page.bytes().begin(), page.bytes().end()});
    return Answered<absl::StatusOr<std::vector<RosterEntry>>>(
        [&](auto done) { return remote_.Roster(kDeadline, done); });
  };
  const auto roster = answer(Liveness::kSilent, base::Milliseconds(7));
  ASSERT_TRUE(roster.ok()) << roster.status();
  ASSERT_EQ(roster->size(), 1u);
  EXPECT_EQ(roster->front().liveness, Liveness::kSilent);
  EXPECT_EQ(roster->front().unheard_for, base::Milliseconds(7));
  EXPECT_TRUE(absl::IsUnavailable(answer(static_cast<Liveness>(2), base::Seconds(1)).status()));
  EXPECT_TRUE(absl::IsUnavailable(answer(Liveness::kAlive, base::Seconds(-1)).status()));
}

TEST_F(RemoteDirectoryTest, HandlesMayOutliveTheDirectory) {
  auto remote = std::make_unique<RemoteDirectory>(loop_, caller_, verbs::Address(), base::Random(2));
  int answers = 0;
  const auto count = [&](const auto&) { ++answers; };
  const base::ObjectVersion x = Announcement("x").version;
  std::vector<base::Pending> handles;
  handles.push_back(remote->Join(Node("a"), kDeadline, count));
  handles.push_back(remote->Nodes(kDeadline, count));
  handles.push_back(remote->Verify("a", {&x, 1}, kDeadline, count));
  handles.push_back(remote->Locate({x.id, base::Seconds(1), kDeadline, ""}, count));
  remote.reset();
  scheduler_.RunFor(kDeadline);
  EXPECT_EQ(answers, 0);
}

// Replies of which bits are flipped, bytes cut off or added: nothing breaks, every call is answered
// once, and when that is over all is well.
TEST_F(RemoteDirectoryTest, GarbledRepliesHarmNothing) {
  base::Random random(1);
  caller_.garble = [&](FakeCaller::Bytes& reply) {
    if (!reply.empty() && random.Chance(0.7)) reply[random.Below(reply.size())] ^= 1 << random.Below(8);
    if (random.Chance(0.2)) reply.resize(random.Below(reply.size() + 1));
    if (random.Chance(0.2)) reply.push_back(static_cast<uint8_t>(random.Next()));
  };
  constexpr int kRounds = 300;
  int answers = 0;
  const auto count = [&](const auto&) { ++answers; };
  const Update update = Announcement("x");
  for (int i = 0; i < kRounds; ++i) {
    std::vector<base::Pending> calls;
    calls.push_back(remote_.Join(Node("a"), kDeadline, count));
    calls.push_back(remote_.Update("a", {}, {&update, 1}, kDeadline, count));
    calls.push_back(remote_.Locate({Id("x"), {}, kDeadline, ""}, count));
    calls.push_back(remote_.Verify("a", {&update.version, 1}, kDeadline, count));
    calls.push_back(remote_.Delete({Id("y"), base::kNoGeneration, {"a"}, "b"}, kDeadline, count));
    calls.push_back(remote_.Held("a", "", kDeadline, count));
    calls.push_back(remote_.Nodes(kDeadline, count));
    scheduler_.RunFor(kDeadline);
  }
  EXPECT_EQ(answers, 7 * kRounds);
  caller_.garble = nullptr;
  EXPECT_TRUE(Join("a").ok());
  EXPECT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Locate("x").ok());
}

}  // namespace
}  // namespace tokamak::directory
