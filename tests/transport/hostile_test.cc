// Peers that speak nonsense, promise what they do not keep, or touch what they must not: they are disconnected and counted, and
// nothing of ours stays with them.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

Header Transfer(uint64_t number, const base::ObjectId& id, Protocol protocol = Protocol::kAuto) {
  Header header;
  header.kind = MessageKind::kTransfer;
  header.transfer = number;
  header.object = id;
  header.protocol = protocol;
  header.deadline_ms = 5000;
  return header;
}

Header Plain(MessageKind kind, uint64_t number, Protocol protocol = Protocol::kAuto) {
  Header header;
  header.kind = kind;
  header.transfer = number;
  header.protocol = protocol;
  return header;
}

// ---- a hostile puller

class HostilePullerTest : public ::testing::Test {
 protected:
  HostilePullerTest() {
    NodeOptions options;
    options.endpoint.serve_deadline = Seconds(10);
    owner = &world.Add(options);
    id = owner->AddObject(100000);
    peer = std::make_unique<RawPeer>(world, 99);
  }

  void Connect() {
    peer->Connect(owner->service);
    ASSERT_TRUE(world.RunUntil([&] { return peer->up(); }, Seconds(1)));
    world.RunFor(Milliseconds(1));
  }

  void ExpectDisconnected(base::Duration limit = Seconds(1)) {
    EXPECT_TRUE(world.RunUntil([&] { return peer->disconnected(); }, limit)) << "the peer was not disconnected";
    EXPECT_TRUE(world.RunUntil([&] { return owner->source.pins() == 0; }, Milliseconds(100)));
    ExpectOthersAreServed();
    world.ExpectClean();
  }
  void ExpectNonsense() {
    ExpectDisconnected();
    EXPECT_EQ(owner->endpoint->counters().protocol_errors, 1u);
  }
  void ExpectOthersAreServed() {
    Node& honest = world.Add();
    auto outcome = honest.Pull(*owner, owner->AddObject(5000), Protocol::kRead);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  }

  World world;
  Node* owner;
  base::ObjectId id;
  std::unique_ptr<RawPeer> peer;
};

TEST_F(HostilePullerTest, ByTheWayThisIsHowItIsDone) {
  Connect();
  Header transfer = Transfer(1, id, Protocol::kRead);
  transfer.flags = kProtocolGiven;
  peer->Send(transfer);
  const auto* data = peer->Await(MessageKind::kData);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(owner->source.pins(), 1u);
  peer->Bulk(verbs::Opcode::kRead, data->header.remote, 100000);
  EXPECT_TRUE(world.RunUntil([&] { return peer->bulk_statuses.size() == 1; }, Seconds(1)));
  EXPECT_EQ(peer->bulk_statuses[0], verbs::CompletionStatus::kSuccess);
  EXPECT_TRUE(IsObject(id, peer->memory().subspan(0, 100000)));
  peer->Send(Plain(MessageKind::kDone, 1, Protocol::kRead));
  EXPECT_TRUE(world.RunUntil([&] { return owner->source.pins() == 0; }, Seconds(1)));
  EXPECT_EQ(owner->endpoint->counters().serves_ok, 1u);
}

TEST_F(HostilePullerTest, BytesThatAreNoMessage) {
  base::Random random(7);
  for (size_t size : {0, 1, 63, 64, 65, 1000}) {
    World w;
    Node& node = w.Add();
    RawPeer raw(w, 99);
    raw.Connect(node.service);
    ASSERT_TRUE(w.RunUntil([&] { return raw.up(); }, Seconds(1)));
    std::vector<uint8_t> bytes(size);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.Next() | 0x80);
    raw.SendBytes(bytes);
    EXPECT_TRUE(w.RunUntil([&] { return raw.disconnected(); }, Seconds(1))) << size;
    EXPECT_EQ(node.endpoint->counters().protocol_errors, 1u) << size;
  }
}

TEST_F(HostilePullerTest, AMessageLongerThanASlot) {
  Connect();
  peer->SendBytes(std::vector<uint8_t>(16 * 1024 + 1));
  ExpectNonsense();
}

TEST_F(HostilePullerTest, WordsOfAnOwner) {
  Connect();
  Header chunk = Plain(MessageKind::kChunk, 1, Protocol::kEager);
  peer->Send(chunk);
  ExpectNonsense();
}

TEST_F(HostilePullerTest, ANumberUsedTwice) {
  Connect();
  peer->Send(Transfer(5, id));
  peer->Send(Transfer(5, id));
  ExpectNonsense();
}

TEST_F(HostilePullerTest, ANumberThatGoesBack) {
  Connect();
  peer->Send(Transfer(5, id));
  peer->Send(Transfer(4, id));
  ExpectNonsense();
}

TEST_F(HostilePullerTest, TheEndOfWhatNeverBegan) {
  Connect();
  peer->Send(Plain(MessageKind::kCancel, 1));
  ExpectNonsense();
}

TEST_F(HostilePullerTest, DoneOfAWrite) {
  Connect();
  Header transfer = Transfer(1, id, Protocol::kWrite);
  transfer.flags = kSizeKnown;
  transfer.size = {100000, 0};
  transfer.remote = peer->range();
  owner->source.SetDelay(Seconds(1));
  peer->Send(transfer);
  peer->Send(Plain(MessageKind::kDone, 1, Protocol::kRead));
  ExpectNonsense();
}

TEST_F(HostilePullerTest, MoreCreditsThanItTook) {
  Connect();
  Header credit;
  credit.credits = 1;
  peer->Send(credit);
  ExpectNonsense();
}

TEST_F(HostilePullerTest, ANoteThatOnlyOwnersWrite) {
  Connect();
  peer->Bulk(verbs::Opcode::kSend, {}, 4);  // four zero bytes are a greeting, which is fine
  world.RunFor(Milliseconds(1));
  EXPECT_FALSE(peer->disconnected());
  peer->memory()[3] = 1;
  peer->Bulk(verbs::Opcode::kSend, {}, 4);
  ExpectNonsense();
}

TEST_F(HostilePullerTest, WritingToTheOwnersObjects) {
  Connect();
  Header transfer = Transfer(1, id, Protocol::kRead);
  transfer.flags = kProtocolGiven;
  peer->Send(transfer);
  const auto* data = peer->Await(MessageKind::kData);
  ASSERT_NE(data, nullptr);
  peer->Bulk(verbs::Opcode::kWrite, data->header.remote, 100);
  EXPECT_TRUE(world.RunUntil([&] { return peer->bulk_statuses.size() == 1; }, Seconds(1)));
  EXPECT_NE(peer->bulk_statuses[0], verbs::CompletionStatus::kSuccess);
  peer.reset();
  EXPECT_TRUE(world.RunUntil([&] { return owner->source.pins() == 0; }, Seconds(3)));
}

TEST_F(HostilePullerTest, NeverSayingDone) {
  Connect();
  for (uint64_t i = 1; i <= 20; ++i) {
    Header transfer = Transfer(i, id, Protocol::kRead);
    transfer.flags = kProtocolGiven;
    transfer.deadline_ms = UINT32_MAX;
    peer->Send(transfer);
  }
  EXPECT_TRUE(world.RunUntil([&] { return peer->Count(MessageKind::kData) == 20; }, Seconds(1)));
  EXPECT_EQ(owner->source.pins(), 20u);
  EXPECT_EQ(peer->Await(MessageKind::kData)->header.deadline_ms, 10000u) << "the owner says what it grants";
  world.RunFor(Seconds(10));
  EXPECT_EQ(owner->source.pins(), 20u) << "the deadline alone proves nothing";
  ExpectDisconnected(Seconds(2));
}

TEST_F(HostilePullerTest, AWriteTargetThatIsNotThere) {
  Connect();
  Header transfer = Transfer(1, id, Protocol::kWrite);
  transfer.flags = kSizeKnown | kProtocolGiven;
  transfer.size = {100000, 0};
  transfer.remote = {0x1000, 0x12345678};
  peer->Bulk(verbs::Opcode::kSend, {}, 4);  // the greeting
  peer->Send(transfer);
  ExpectDisconnected(Seconds(3));
}

TEST_F(HostilePullerTest, NeverGivingBackCredits) {
  Connect();
  // It takes no notice of the answers, and asks for more than the endpoint will ever let wait.
  for (uint64_t i = 1; i <= 20000 && !peer->disconnected(); ++i) {
    peer->Send(Transfer(i, base::ObjectId::FromName("nowhere")));
    if (i % 50 == 0) world.RunFor(Milliseconds(1));
  }
  ExpectDisconnected();
  EXPECT_LE(peer->Count(MessageKind::kFail), 127u) << "of 128 credits the last is kept";
  EXPECT_GE(peer->Count(MessageKind::kFail), 100u);
}

TEST_F(HostilePullerTest, MoreCallsThanAreAnswered) {
  std::vector<Endpoint::Reply> kept;
  owner->endpoint->SetCallHandler(
      [&](absl::Span<const uint8_t>, Endpoint::Reply reply) { kept.push_back(std::move(reply)); });
  Connect();
  for (uint64_t i = 1; i <= 257; ++i) {
    Header call = Plain(MessageKind::kCall, i);
    call.deadline_ms = 10000;
    peer->Send(call);
    if (i % 50 == 0) world.RunFor(Milliseconds(1));
  }
  ExpectNonsense();
  EXPECT_EQ(kept.size(), 256u);
}

TEST_F(HostilePullerTest, HalfAConnection) {
  peer->Connect(owner->service, {0});
  world.RunFor(Milliseconds(10));
  peer->Send(Transfer(1, id));
  ExpectDisconnected(Seconds(10));
}

TEST_F(HostilePullerTest, AnotherVersionIsRefusedWithOurs) {
  peer->hello.version = 9;
  peer->Connect(owner->service);
  EXPECT_TRUE(world.RunUntil([&] { return peer->rejected(); }, Seconds(1)));
  EXPECT_TRUE(IsHello(peer->rejection()));
  EXPECT_EQ(peer->rejection()[4], kProtocolVersion);
  EXPECT_GE(owner->endpoint->counters().protocol_errors, 1u);
}

TEST_F(HostilePullerTest, LateWordsAreCountedOnly) {
  Connect();
  peer->Send(Transfer(1, base::ObjectId::FromName("nowhere")));
  ASSERT_NE(peer->Await(MessageKind::kFail), nullptr);
  peer->Send(Plain(MessageKind::kCancel, 1));
  peer->Send(Plain(MessageKind::kDone, 1, Protocol::kRead));
  world.RunFor(Milliseconds(10));
  EXPECT_EQ(owner->endpoint->counters().late_messages, 2u);
  EXPECT_FALSE(peer->disconnected());
}

// ---- a hostile owner

class HostileOwnerTest : public ::testing::Test {
 protected:
  HostileOwnerTest() : puller(world.Add()), peer(world, 99) {
    peer.Listen();
    request.id = base::ObjectId::FromName("x");
    request.owner = peer.service();
    request.size_known = true;
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
  void ExpectNonsense(const std::shared_ptr<Outcome>& outcome) {
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

TEST_F(HostileOwnerTest, AnswersToWhatWasNeverAsked) {
  auto outcome = Ask(Protocol::kRead);
  Header data = Data();
  data.transfer = 77;
  peer.Send(data);
  ExpectNonsense(outcome);
}

TEST_F(HostileOwnerTest, WordsOfAPuller) {
  auto outcome = Ask(Protocol::kRead);
  peer.Send(Plain(MessageKind::kCancel, asked.transfer));
  ExpectNonsense(outcome);
}

TEST_F(HostileOwnerTest, DataTwice) {
  auto outcome = Ask(Protocol::kRead);
  peer.Send(Data());
  peer.Send(Data());
  ExpectNonsense(outcome);
}

TEST_F(HostileOwnerTest, DataWhereAWriteWasAskedFor) {
  auto outcome = Ask(Protocol::kWrite);
  peer.Send(Data());
  ExpectNonsense(outcome);
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
  ExpectNonsense(outcome);
}

TEST_F(HostileOwnerTest, AChunkTwice) {
  auto outcome = Ask(Protocol::kEager);
  peer.Send(Chunk(0), std::vector<uint8_t>(1000));
  peer.Send(Chunk(0), std::vector<uint8_t>(1000));
  ExpectNonsense(outcome);
}

TEST_F(HostileOwnerTest, ChunksOfTwoObjects) {
  auto outcome = Ask(Protocol::kEager);
  peer.Send(Chunk(0), std::vector<uint8_t>(1000));
  Header other = Chunk(1000);
  other.size = {65000, 1000};
  peer.Send(other, std::vector<uint8_t>(1000));
  ExpectNonsense(outcome);
}

TEST_F(HostileOwnerTest, DoneWhereThereIsSomethingToWrite) {
  auto outcome = Ask(Protocol::kWrite);
  peer.Send(Plain(MessageKind::kDone, asked.transfer, Protocol::kWrite));
  ExpectNonsense(outcome);
}

TEST_F(HostileOwnerTest, ANoteOfMoreQueuePairsThanThereAre) {
  auto outcome = Ask(Protocol::kWrite);
  const Note note{static_cast<uint32_t>(asked.transfer) & Note::kNumberMask, 2};
  peer.Bulk(verbs::Opcode::kWriteWithImm, asked.remote, 100, note.Pack());
  ExpectNonsense(outcome);
}

TEST_F(HostileOwnerTest, ANoteOfNothingIsLate) {
  auto outcome = Ask(Protocol::kWrite);
  peer.Bulk(verbs::Opcode::kWriteWithImm, asked.remote, 100, Note{12345, 1}.Pack());
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
  const Note note{static_cast<uint32_t>(asked.transfer) & Note::kNumberMask, 1};
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

// An owner that does not react to CANCEL: the key is revoked, and only then the memory is given back.
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

// What an owner says of a failure is shown, but may not do harm there.
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
  peer.hello.version = 9;
  auto outcome = puller.Pull(request);
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kFailedPrecondition) << outcome->status;
  EXPECT_NE(outcome->status.message().find("version 9"), absl::string_view::npos) << outcome->status;
  EXPECT_NE(outcome->status.message().find("version 1"), absl::string_view::npos) << outcome->status;
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
      request.size_known = protocol != Protocol::kAuto;
      request.size = request.size_known ? ObjectSize{3000, 0} : ObjectSize{};
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
