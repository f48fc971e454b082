// Pullers that violate the protocol, promise what they do not keep, or touch what they must not:
// they are disconnected and counted, and no pin stays with them.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/transport/limits.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

constexpr uint64_t kSize = 100000;  // of the object that is asked for

class HostilePullerTest : public ::testing::Test {
 protected:
  HostilePullerTest() {
    NodeOptions options;
    options.endpoint.first_slots = options.endpoint.receive_slots;  // a raw peer counts no credits
    options.endpoint.serve_deadline = Seconds(10);
    owner = &world.Add(options);
    id = owner->AddObject(kSize);
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
  void ExpectViolation() {
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

TEST_F(HostilePullerTest, AnHonestPullIsServed) {
  Connect();
  Header transfer = Transfer(1, id, kSize, Protocol::kRead);
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

TEST_F(HostilePullerTest, MalformedBytes) {
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
  ExpectViolation();
}

TEST_F(HostilePullerTest, WordsOfAnOwner) {
  Connect();
  Header chunk = Plain(MessageKind::kChunk, 1, Protocol::kEager);
  peer->Send(chunk);
  ExpectViolation();
}

TEST_F(HostilePullerTest, ANumberUsedTwice) {
  Connect();
  peer->Send(Transfer(5, id, kSize));
  peer->Send(Transfer(5, id, kSize));
  ExpectViolation();
}

TEST_F(HostilePullerTest, ANumberThatGoesBack) {
  Connect();
  peer->Send(Transfer(5, id, kSize));
  peer->Send(Transfer(4, id, kSize));
  ExpectViolation();
}

TEST_F(HostilePullerTest, TheEndOfNoTransfer) {
  Connect();
  peer->Send(Plain(MessageKind::kCancel, 1));
  ExpectViolation();
}

TEST_F(HostilePullerTest, DoneOfAWrite) {
  Connect();
  Header transfer = Transfer(1, id, kSize, Protocol::kWrite);
  transfer.remote = peer->range();
  owner->source.SetDelay(Seconds(1));
  peer->Send(transfer);
  peer->Send(Plain(MessageKind::kDone, 1, Protocol::kRead));
  ExpectViolation();
}

TEST_F(HostilePullerTest, CreditsBeyondThoseTaken) {
  Connect();
  Header credit;
  credit.credits = 1;
  peer->Send(credit);
  ExpectViolation();
}

TEST_F(HostilePullerTest, ANoteOfAnOwner) {
  Connect();
  peer->Bulk(verbs::Opcode::kSend, {}, 4);  // four zero bytes are a greeting, which is fine
  world.RunFor(Milliseconds(1));
  EXPECT_FALSE(peer->disconnected());
  peer->memory()[3] = 1;
  peer->Bulk(verbs::Opcode::kSend, {}, 4);
  ExpectViolation();
}

TEST_F(HostilePullerTest, WritingToTheOwnersObjects) {
  Connect();
  Header transfer = Transfer(1, id, kSize, Protocol::kRead);
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
    Header transfer = Transfer(i, id, kSize, Protocol::kRead);
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

TEST_F(HostilePullerTest, AMissingWriteTarget) {
  Connect();
  Header transfer = Transfer(1, id, kSize, Protocol::kWrite);
  transfer.flags = kProtocolGiven;
  transfer.remote = {0x1000, 0x12345678};
  peer->Bulk(verbs::Opcode::kSend, {}, 4);  // the greeting
  peer->Send(transfer);
  ExpectDisconnected(Seconds(3));
}

TEST_F(HostilePullerTest, NeverGivingBackCredits) {
  Connect();
  // It takes no notice of the answers, and asks for more than the endpoint will ever let wait.
  for (uint64_t i = 1; i <= 20000 && !peer->disconnected(); ++i) {
    peer->Send(Transfer(i, base::ObjectId::FromName("nowhere"), kSize));
    if (i % 50 == 0) world.RunFor(Milliseconds(1));
  }
  ExpectDisconnected();
  EXPECT_LE(peer->Count(MessageKind::kFail), 127u) << "of 128 credits the last ones are kept";
  EXPECT_GE(peer->Count(MessageKind::kFail), 100u);
}

// It asks for all that is served at once, and ends none of it.
TEST_F(HostilePullerTest, AGreedyPeerLeavesRoomForOthers) {
  NodeOptions options;
  options.endpoint.first_slots = options.endpoint.receive_slots;
  options.endpoint.max_transfers = 16;
  owner = &world.Add(options);
  id = owner->AddObject(kSize);
  Connect();
  for (uint64_t i = 1; i <= 20; ++i) {
    Header transfer = Transfer(i, id, kSize, Protocol::kRead);
    transfer.flags = kProtocolGiven;
    transfer.deadline_ms = 1'000'000;
    peer->Send(transfer);
  }
  const auto answers = [&] { return peer->Count(MessageKind::kData) + peer->Count(MessageKind::kFail); };
  ASSERT_TRUE(world.RunUntil([&] { return answers() == 20; }, Seconds(1)));
  EXPECT_EQ(peer->Count(MessageKind::kData), 16 / kPeerPart);
  EXPECT_EQ(peer->Count(MessageKind::kFail), 20 - 16 / kPeerPart);
  Node& honest = world.Add();
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (uint32_t i = 0; i < 16 / kPeerPart; ++i) {
    outcomes.push_back(honest.Pull(*owner, owner->AddObject(500'000 + i), Protocol::kRead));
  }
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
    EXPECT_TRUE(outcome->status.ok()) << outcome->status;
  }
  EXPECT_TRUE(world.RunUntil([&] { return owner->source.pins() == 16 / kPeerPart; }, Seconds(1)));
  // Finished transfers make room for new ones.
  peer->Send(Plain(MessageKind::kDone, 1, Protocol::kRead));
  Header next = Transfer(21, id, kSize, Protocol::kRead);
  next.flags = kProtocolGiven;
  peer->Send(next);
  ASSERT_TRUE(world.RunUntil([&] { return peer->received.size() == 21; }, Seconds(1)));
  EXPECT_EQ(peer->Count(MessageKind::kData), 16 / kPeerPart + 1);
}

TEST_F(HostilePullerTest, CallsBeyondTheBound) {
  std::vector<Reply> kept;
  owner->endpoint->SetCallHandler(
      Handler([&](absl::Span<const uint8_t>, Reply reply) { kept.push_back(std::move(reply)); }));
  Connect();
  for (uint64_t i = 1; i <= 257; ++i) {
    Header call = Plain(MessageKind::kCall, i);
    call.deadline_ms = 10000;
    peer->Send(call);
    if (i % 50 == 0) world.RunFor(Milliseconds(1));
  }
  ExpectViolation();
  EXPECT_EQ(kept.size(), 256u);
}

TEST_F(HostilePullerTest, HalfOfTheBulkQueuePairs) {
  peer->hello.bulk_queue_pairs = 2;
  peer->Connect(owner->service, {0, 1});
  world.RunFor(Milliseconds(10));
  peer->Send(Transfer(1, id, kSize));
  ExpectDisconnected(Seconds(10));
}

// It may READ, and has nothing to do so with.
TEST_F(HostilePullerTest, NoBulkQueuePairs) {
  peer->Connect(owner->service, {0});
  world.RunFor(Milliseconds(10));
  Header transfer = Transfer(1, id, kSize);
  transfer.flags = kProtocolGiven;
  peer->Send(transfer);
  ASSERT_NE(peer->Await(MessageKind::kData), nullptr);
  ExpectDisconnected(Seconds(10));
}

TEST_F(HostilePullerTest, AnotherVersionIsRefusedWithOurs) {
  peer->hello.version = kProtocolVersion + 1;
  peer->Connect(owner->service);
  EXPECT_TRUE(world.RunUntil([&] { return peer->rejected(); }, Seconds(1)));
  EXPECT_TRUE(IsHello(peer->rejection()));
  EXPECT_EQ(peer->rejection()[4], kProtocolVersion);
  EXPECT_GE(owner->endpoint->counters().protocol_errors, 1u);
}

TEST_F(HostilePullerTest, LateMessagesAreOnlyCounted) {
  Connect();
  peer->Send(Transfer(1, base::ObjectId::FromName("nowhere"), kSize));
  ASSERT_NE(peer->Await(MessageKind::kFail), nullptr);
  peer->Send(Plain(MessageKind::kCancel, 1));
  peer->Send(Plain(MessageKind::kDone, 1, Protocol::kRead));
  world.RunFor(Milliseconds(10));
  EXPECT_EQ(owner->endpoint->counters().late_messages, 2u);
  EXPECT_FALSE(peer->disconnected());
}

TEST_F(HostilePullerTest, ACallIsCancelledOnce) {
  std::vector<Reply> kept;
  owner->endpoint->SetCallHandler(
      Handler([&](absl::Span<const uint8_t>, Reply reply) { kept.push_back(std::move(reply)); }));
  Connect();
  peer->Send(Plain(MessageKind::kCall, 1));
  for (int i = 0; i < 2; ++i) peer->Send(Plain(MessageKind::kCancel, 1));
  const RawPeer::Received* fail = peer->Await(MessageKind::kFail);
  ASSERT_NE(fail, nullptr);
  world.RunFor(Milliseconds(10));
  EXPECT_EQ(peer->Count(MessageKind::kFail), 1u);
  EXPECT_EQ(owner->endpoint->counters().late_messages, 1u);
  EXPECT_FALSE(peer->disconnected());
}

}  // namespace
}  // namespace tokamak::transport::testing
