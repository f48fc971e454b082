// The remote directory under lost, late and garbled replies; what all directories promise is in conformance/.
#include "lib/directory/remote/remote.h"

#include <string>
#include <vector>

#include "lib/base/random.h"
#include "tests/directory/remote_fixture.h"

namespace tokamak::directory {
namespace {

TEST_F(RemoteDirectoryTest, ALostReplyEndsTheCallAtItsDeadlineThoughTheServerActed) {
  caller_.lose_replies = true;
  const absl::Status status = Join("a");
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(local_.nodes(), 1u);
}

TEST_F(RemoteDirectoryTest, AnErrorNamesTheServerThatDidNotAnswer) {
  caller_.cut = true;
  EXPECT_NE(Join("a").message().find("10.0.0.1:7000"), std::string::npos);
}

TEST_F(RemoteDirectoryTest, ALateReplyIsNoReply) {
  caller_.one_way = kDeadline;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Join("a")));
  scheduler_.RunFor(kDeadline * 4);
}

TEST_F(RemoteDirectoryTest, ManyNodesComeInManyReplies) {
  DirectoryServer small_replies(local_, 512);
  FakeCaller caller(loop_, [&](absl::Span<const uint8_t> request, DirectoryServer::Reply reply) {
    small_replies.Handle(request, [reply](absl::Span<const uint8_t> bytes) {
      EXPECT_LE(bytes.size(), 512u);
      reply(bytes);
    });
  });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Join("n" + std::to_string(i)).ok());
  RemoteDirectory remote(loop_, caller, verbs::Address());
  std::vector<NodeInfo> nodes;
  remote.Nodes(kDeadline, [&](absl::StatusOr<std::vector<NodeInfo>> all) { nodes = *std::move(all); });
  scheduler_.RunFor(kDeadline);
  ASSERT_EQ(nodes.size(), 100u);
  EXPECT_EQ(nodes.front().id, "n0");
  EXPECT_EQ(nodes.back().id, "n99");
  EXPECT_GT(caller.calls(), 10u);
}

TEST_F(RemoteDirectoryTest, HoldersThatDoNotFitAReplyAreLeftOut) {
  DirectoryServer small_replies(local_, 512);
  size_t reply_size = 0;
  FakeCaller caller(loop_, [&](absl::Span<const uint8_t> request, DirectoryServer::Reply reply) {
    small_replies.Handle(request, [&, reply](absl::Span<const uint8_t> bytes) {
      reply_size = bytes.size();
      reply(bytes);
    });
  });
  for (int i = 0; i < 50; ++i) {
    const NodeId node = std::to_string(i) + NodeId(60, 'n');
    ASSERT_TRUE(Join(node).ok());
    ASSERT_TRUE(Announce("x", node).ok());
  }
  RemoteDirectory remote(loop_, caller, verbs::Address());
  absl::StatusOr<ObjectInfo> info = absl::InternalError("no answer");
  remote.Locate(Id("x"), {}, kDeadline, [&](absl::StatusOr<ObjectInfo> found) { info = std::move(found); });
  scheduler_.RunFor(kDeadline);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_GE(info->holders.size(), 5u);
  EXPECT_LE(reply_size, 512u);
}

TEST_F(RemoteDirectoryTest, AReplyThatMakesNoSenseIsUnavailable) {
  const std::vector<FakeCaller::Bytes> nonsense = {
      {},                                  // nothing
      {0},                                 // a status without its text
      {0, 0, 0, 0, 0},                     // ok, and nothing of what was asked
      {99, 0, 0, 0, 0},                    // a status that does not exist
      {0, 255, 255, 255, 255},             // a text that is not there
      {0, 0, 0, 0, 0, 1, 255, 255, 0, 0},  // a count of things that are not there
  };
  for (const auto& bytes : nonsense) {
    AnswerWith(bytes);
    EXPECT_TRUE(absl::IsUnavailable(Join("a")));
    EXPECT_TRUE(absl::IsUnavailable(Locate("x", {}, kDeadline).status()));
    EXPECT_TRUE(absl::IsUnavailable(Nodes().status()));
  }
  AnswerWith({0, 0, 0, 0, 0, 7});  // more than was asked
  EXPECT_TRUE(absl::IsUnavailable(Announce("x", "a")));
}

TEST_F(RemoteDirectoryTest, AFoundObjectHasAHolder) {
  AnswerWith(FakeCaller::Bytes(5 + 8 + 8 + 4, 0));
  EXPECT_TRUE(absl::IsUnavailable(Locate("x", {}, kDeadline).status()));
}

TEST_F(RemoteDirectoryTest, AServerThatRepeatsItselfIsNotAskedForEver) {
  base::Writer page;
  WriteStatus(page, absl::OkStatus());
  page.Integer<uint8_t>(1);  // more to come
  page.Integer<uint32_t>(1);
  WriteNode(page, Node("a"));
  AnswerWith({page.bytes().begin(), page.bytes().end()});
  EXPECT_TRUE(absl::IsUnavailable(Nodes().status()));
  EXPECT_LE(caller_.calls(), 2u);
}

// Replies of which bits are flipped, bytes cut off or added: nothing breaks, every call is answered once, and when that is
// over all is well.
TEST_F(RemoteDirectoryTest, GarbledRepliesHarmNothing) {
  base::Random random(1);
  caller_.garble = [&](FakeCaller::Bytes& reply) {
    if (!reply.empty() && random.Chance(0.7)) reply[random.Below(reply.size())] ^= 1 << random.Below(8);
    if (random.Chance(0.2)) reply.resize(random.Below(reply.size() + 1));
    if (random.Chance(0.2)) reply.push_back(static_cast<uint8_t>(random.Next()));
  };
  constexpr int kRounds = 300;
  int answers = 0;
  for (int i = 0; i < kRounds; ++i) {
    remote_.Join(Node("a"), kLease, kDeadline, [&](const auto&) { ++answers; });
    remote_.Announce(Id("x"), 1, 2, "a", kDeadline, [&](const auto&) { ++answers; });
    remote_.Locate(Id("x"), {}, kDeadline, [&](const auto&) { ++answers; });
    remote_.Nodes(kDeadline, [&](const auto&) { ++answers; });
    scheduler_.RunFor(kDeadline);
  }
  EXPECT_EQ(answers, 4 * kRounds);
  caller_.garble = nullptr;
  EXPECT_TRUE(Join("a").ok());
  EXPECT_TRUE(Announce("x", "a").ok());
  EXPECT_TRUE(Locate("x", {}, kDeadline).ok());
}

TEST_F(RemoteDirectoryTest, RequestsThatMakeNoSenseAreRefusedAndHarmNothing) {
  base::Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> request(random.Below(120));
    for (uint8_t& byte : request) byte = random.Chance(0.7) ? 0 : static_cast<uint8_t>(random.Next());
    if (!request.empty()) request[0] = static_cast<uint8_t>(random.Below(8));
    int replies = 0;
    server_.Handle(request, [&](absl::Span<const uint8_t> reply) {
      ++replies;
      base::Reader reader(reply);
      ReadStatus(reader).IgnoreError();
      EXPECT_TRUE(reader.ok());
    });
    scheduler_.RunFor(kMaxRemoteWait);
    ASSERT_EQ(replies, 1);
  }
  EXPECT_TRUE(Join("still-alive").ok());
}

TEST_F(RemoteDirectoryTest, AnEndlessLeaseOrWaitIsRefused) {
  absl::Status status;
  remote_.Join(Node("a"), base::Seconds(1'000'000), kDeadline, [&](const auto& result) { status = result.status(); });
  scheduler_.RunFor(kDeadline);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace tokamak::directory
