// Owners that violate the protocol, or write where and when they must not: they are disconnected
// and counted, and no memory that was given back is touched.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/transport/limits.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

class HostileOwnerTest : public ::testing::Test {
 protected:
  HostileOwnerTest() : puller(world.Add()), peer(world, 99) {
    peer.Listen();
    request.id = base::ObjectId::FromName("x");
    request.owner = peer.service();
    request.size = {60000, 5000};
    request.deadline = Seconds(5);
  }

  // A pull that has been asked for.
  std::shared_ptr<Outcome> Ask(Protocol protocol) {
    request.protocol = protocol;
    auto outcome = puller.Pull(request);
    asked = peer.Await(MessageKind::kTransfer)->header;
    world.RunFor(Milliseconds(1));
    return outcome;
  }
  Header Data() {
    Header data = Plain(MessageKind::kData, asked.transfer, Protocol::kRead);
    data.deadline_ms = 5000;
    data.size = request.size;
    data.remote = peer.range();
    return data;
  }
  Header Chunk(uint64_t offset) {
    Header chunk = Plain(MessageKind::kChunk, asked.transfer, Protocol::kEager);
    chunk.size = request.size;
    chunk.offset = offset;
    return chunk;
  }
  void ExpectViolation(const std::shared_ptr<Outcome>& outcome) {
    ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
    EXPECT_EQ(puller.endpoint->counters().protocol_errors, 1u);
    EXPECT_TRUE(world.RunUntil([&] { return peer.disconnected(); }, Seconds(1)));
    world.ExpectClean();
  }

  World world;
  Node& puller;
  RawPeer peer;
  PullRequest request;
  Header asked;
};

TEST_F(HostileOwnerTest, AnswersToNoQuestion) {
  auto outcome = Ask(Protocol::kRead);
  Header data = Data();
  data.transfer = 77;
  peer.Send(data);
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, WordsOfAPuller) {
  auto outcome = Ask(Protocol::kRead);
  peer.Send(Plain(MessageKind::kCancel, asked.transfer));
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, DataTwice) {
  auto outcome = Ask(Protocol::kRead);
  peer.Send(Data());
  peer.Send(Data());
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, DataInsteadOfAWrite) {
  auto outcome = Ask(Protocol::kWrite);
  peer.Send(Data());
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, DataOfAnotherSizeFailsThePull) {
  auto outcome = Ask(Protocol::kRead);
  Header data = Data();
  data.size = {65000, 0};
  peer.Send(data);
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kFailedPrecondition) << outcome->status;
  EXPECT_NE(peer.Await(MessageKind::kCancel), nullptr);
  world.ExpectClean();
}

TEST_F(HostileOwnerTest, AKeyThatOpensNothing) {
  auto outcome = Ask(Protocol::kRead);
  Header data = Data();
  data.remote.rkey ^= 0x5555;
  peer.Send(data);
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
  world.ExpectClean();
}

TEST_F(HostileOwnerTest, AChunkThatIsNotTheNext) {
  auto outcome = Ask(Protocol::kEager);
  peer.Send(Chunk(0), std::vector<uint8_t>(1000));
  peer.Send(Chunk(2000), std::vector<uint8_t>(1000));
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, AChunkTwice) {
  auto outcome = Ask(Protocol::kEager);
  peer.Send(Chunk(0), std::vector<uint8_t>(1000));
  peer.Send(Chunk(0), std::vector<uint8_t>(1000));
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, ChunksOfTwoObjects) {
  auto outcome = Ask(Protocol::kEager);
  peer.Send(Chunk(0), std::vector<uint8_t>(1000));
  Header other = Chunk(1000);
  other.size = {65000, 1000};
  peer.Send(other, std::vector<uint8_t>(1000));
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, DoneInsteadOfAWrite) {
  auto outcome = Ask(Protocol::kWrite);
  peer.Send(Plain(MessageKind::kDone, asked.transfer, Protocol::kWrite));
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, ANoteOfTooManyQueuePairs) {
  auto outcome = Ask(Protocol::kWrite);
  const Note note{static_cast<uint32_t>(asked.transfer) & Note::kNumberMask, 0, 2};
  peer.Bulk(verbs::Opcode::kWriteWithImm, asked.remote, 100, note.Pack());
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, ANoteOfAnInvalidShare) {
  auto outcome = Ask(Protocol::kWrite);
  const Note note{static_cast<uint32_t>(asked.transfer) & Note::kNumberMask, 1, 1};
  peer.Bulk(verbs::Opcode::kWriteWithImm, asked.remote, 100, note.Pack());
  ExpectViolation(outcome);
}

TEST_F(HostileOwnerTest, ANoteOfNothingIsLate) {
  auto outcome = Ask(Protocol::kWrite);
  peer.Bulk(verbs::Opcode::kWriteWithImm, asked.remote, 100, Note{12345}.Pack());
  world.RunFor(Milliseconds(1));
  EXPECT_EQ(puller.endpoint->counters().late_messages, 1u);
  EXPECT_FALSE(outcome->done);
  puller.endpoint->CancelPull(outcome->pull);
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kCancelled);
  world.ExpectClean();
}

TEST_F(HostileOwnerTest, WritingBesideTheTarget) {
  for (int64_t offset : {int64_t{-1}, int64_t{1}}) {
    World w;
    Node& node = w.Add();
    RawPeer raw(w, 99);
    raw.Listen();
    request.owner = raw.service();
    request.protocol = Protocol::kWrite;
    auto outcome = node.Pull(request);
    const Header transfer = raw.Await(MessageKind::kTransfer)->header;
    w.RunFor(Milliseconds(1));
    RemoteRange beside = transfer.remote;
    beside.address += static_cast<uint64_t>(offset);
    raw.Bulk(verbs::Opcode::kWrite, beside, 65000);
    ASSERT_TRUE(w.Finish(outcome, Seconds(10)));
    EXPECT_TRUE(w.RunUntil([&] { return !raw.bulk_statuses.empty(); }, Seconds(1)));
    EXPECT_EQ(raw.bulk_statuses.at(0), verbs::CompletionStatus::kRemoteAccess);
    EXPECT_FALSE(outcome->status.ok());
    w.ExpectClean();
  }
}

// The key is revoked before the object is sealed.
TEST_F(HostileOwnerTest, WritingOnceMoreAfterTheEnd) {
  auto outcome = Ask(Protocol::kWrite);
  const Note note{static_cast<uint32_t>(asked.transfer) & Note::kNumberMask};
  FillObject(request.id, peer.memory().subspan(0, 65000));
  peer.Bulk(verbs::Opcode::kWriteWithImm, asked.remote, 65000, note.Pack());
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  peer.memory()[0] ^= 1;
  peer.Bulk(verbs::Opcode::kWrite, asked.remote, 65000);
  EXPECT_TRUE(world.RunUntil([&] { return peer.bulk_statuses.size() == 2; }, Seconds(3)));
  EXPECT_EQ(peer.bulk_statuses.at(1), verbs::CompletionStatus::kRemoteAccess);
  EXPECT_TRUE(IsObject(request.id, outcome->memory)) << "a sealed object was written";
}

// An owner that does not react to CANCEL: the key is revoked, and only then the memory
// is given back.
TEST_F(HostileOwnerTest, WritingOnAfterACancel) {
  auto outcome = Ask(Protocol::kWrite);
  puller.endpoint->CancelPull(outcome->pull);
  world.RunFor(Milliseconds(100));
  EXPECT_FALSE(outcome->done) << "the owner may still be writing";
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kCancelled);
  peer.Bulk(verbs::Opcode::kWrite, asked.remote, 65000);
  EXPECT_TRUE(world.RunUntil([&] { return peer.bulk_statuses.size() == 1; }, Seconds(3)));
  EXPECT_EQ(peer.bulk_statuses.at(0), verbs::CompletionStatus::kRemoteAccess);
  world.ExpectClean();
}

TEST_F(HostileOwnerTest, SilenceEndsWithTheDeadline) {
  for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    peer.received.clear();
    auto outcome = Ask(protocol);
    ASSERT_TRUE(world.Finish(outcome, Seconds(6)));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kDeadlineExceeded) << outcome->status;
  }
  world.ExpectClean();
}

// The puller has given its bulk queue pairs back, and needs them again.
class LeftOwnerTest : public HostileOwnerTest {
 protected:
  std::shared_ptr<Outcome> AskWhileLeaving() {
    const auto first = Ask(Protocol::kRead);
    peer.Send(Data());
    EXPECT_TRUE(world.Finish(first, Seconds(1)));
    EXPECT_TRUE(first->status.ok()) << first->status;
    const base::Time ended = world.time.Now();
    EXPECT_TRUE(world.RunUntil([this] { return peer.Count(MessageKind::kRailDown) == 1; }, kBulkRest * 2));
    EXPECT_GE(world.time.Now() - ended, kBulkRest);
    peer.received.clear();
    return Ask(Protocol::kRead);
  }
};

TEST_F(LeftOwnerTest, DataBeforeItsWord) {
  const auto outcome = AskWhileLeaving();
  peer.Send(Data());
  ExpectViolation(outcome);
}

TEST_F(LeftOwnerTest, NoWordAtAllEndsTheConnection) {
  request.deadline = Seconds(60);
  const auto outcome = AskWhileLeaving();
  ASSERT_TRUE(world.Finish(outcome, kConnectDeadline + Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
  EXPECT_TRUE(world.RunUntil([&] { return peer.disconnected(); }, Seconds(1)));
}

// An owner's text about a failure is shown, but must do no harm there.
TEST_F(HostileOwnerTest, TheTextOfAFailureIsMadeSafe) {
  auto outcome = Ask(Protocol::kRead);
  Header fail = Plain(MessageKind::kFail, asked.transfer);
  fail.status = absl::StatusCode::kNotFound;
  peer.Send(fail, {'a', '\n', 0x1b, 0xff, 'b'});
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(outcome->status.message().find("a???b"), absl::string_view::npos) << outcome->status;
}

TEST_F(HostileOwnerTest, AnotherVersionIsNamed) {
  peer.hello.version = kProtocolVersion + 1;
  auto outcome = puller.Pull(request);
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kFailedPrecondition) << outcome->status;
  EXPECT_NE(outcome->status.message().find(absl::StrCat("version ", kProtocolVersion + 1)), absl::string_view::npos)
      << outcome->status;
  EXPECT_NE(outcome->status.message().find(absl::StrCat("version ", kProtocolVersion)), absl::string_view::npos)
      << outcome->status;
}

TEST_F(HostileOwnerTest, AHelloOutOfBounds) {
  peer.hello.slot_size = 1;
  ExpectViolation(puller.Pull(request));
}

TEST_F(HostileOwnerTest, AHelloThatAnswersAnotherConnection) {
  peer.hello.bulk_queue_pairs = 2;
  ExpectViolation(puller.Pull(request));
}

// Whatever bytes an owner sends, in whatever order.
TEST_F(HostileOwnerTest, RandomAnswers) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    base::Random random(seed);
    World w;
    Node& node = w.Add();
    RawPeer raw(w, 99);
    raw.Listen();
    std::vector<std::shared_ptr<Outcome>> outcomes;
    request.owner = raw.service();
    request.deadline = Milliseconds(500);
    for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite, Protocol::kAuto}) {
      request.protocol = protocol;
      request.size = {3000, 0};
      outcomes.push_back(node.Pull(request));
    }
    w.RunUntil([&] { return raw.Count(MessageKind::kTransfer) == 4; }, Seconds(1));
    std::vector<uint64_t> offsets(6);
    for (int i = 0; i < 30; ++i) {
      Header h = Plain(static_cast<MessageKind>(2 + random.Below(5)), 1 + random.Below(5));
      std::vector<uint8_t> body;
      if (h.kind == MessageKind::kChunk) {
        h.protocol = Protocol::kEager;
        h.size = {3000, 0};
        h.offset = offsets[h.transfer];
        body.resize(std::min<uint64_t>(1000, 3000 - h.offset));
        if (body.empty()) continue;
        offsets[h.transfer] += body.size();
      } else if (h.kind == MessageKind::kData) {
        h.protocol = Protocol::kRead;
        h.size = {3000, 0};
        h.remote = raw.range();
        h.deadline_ms = 1000;
      } else if (h.kind == MessageKind::kDone) {
        h.protocol = Protocol::kWrite;
      } else if (h.kind == MessageKind::kFail) {
        h.status = absl::StatusCode::kInternal;
      }
      raw.Send(h, body);
      if (random.Below(3) == 0) w.RunFor(Milliseconds(1));
      if (random.Below(10) == 0) node.endpoint->CancelPull(outcomes[random.Below(4)]->pull);
      if (random.Below(10) == 0) raw.Bulk(verbs::Opcode::kSend, {}, static_cast<uint32_t>(random.Below(9)));
    }
    for (auto& outcome : outcomes) EXPECT_TRUE(w.Finish(outcome, Seconds(5))) << "seed " << seed;
    w.ExpectClean();
  }
}

}  // namespace
}  // namespace tokamak::transport::testing
