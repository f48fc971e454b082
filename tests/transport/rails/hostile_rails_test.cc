// A peer's legal messages about rails, and its protocol violations.
#include <algorithm>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/transport/messages/rail_messages.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

constexpr uint64_t kRailsSize = 65000;

NodeOptions TwoRails() {
  NodeOptions options;
  options.rails = 2;
  return options;
}

Header Down(uint32_t rail) {
  Header header;
  header.kind = MessageKind::kRailDown;
  header.rail = rail;
  return header;
}

Header RailsMessage() {
  Header header;
  header.kind = MessageKind::kRails;
  return header;
}

class HostileRailsTest : public ::testing::Test {
 protected:
  HostileRailsTest() { peer.hello.rails = 2; }

  void ExpectViolation() {
    EXPECT_TRUE(world.RunUntil([&] { return peer.disconnected(); }, Seconds(1)));
    EXPECT_EQ(node.endpoint->counters().protocol_errors, 1u);
    world.ExpectClean();
  }
  void ExpectNothing() {
    world.RunFor(Milliseconds(10));
    EXPECT_FALSE(peer.disconnected());
    EXPECT_EQ(node.endpoint->counters().protocol_errors, 0u);
  }

  World world;
  Node& node = world.Add(TwoRails());
  RawPeer peer{world, 99};
};

// ---- a puller

class HostilePullersRailsTest : public HostileRailsTest {
 protected:
  HostilePullersRailsTest() {
    peer.Connect(node.service);
    EXPECT_TRUE(world.RunUntil([&] { return peer.up(); }, Seconds(1)));
    const RawPeer::Received* rails = peer.Await(MessageKind::kRails);
    if (rails == nullptr) return;
    const auto decoded = DecodeRails(rails->body);
    EXPECT_TRUE(decoded.ok() && decoded->size() == 2 && (*decoded)[0] == node.service &&
                (*decoded)[1].ip == node.AddressOf(1).ip)
        << decoded.status();
  }

  // A TRANSFER by write with a key of `rail`.
  Header TransferWithKeyOf(uint32_t rail) {
    const base::ObjectId id = node.AddObject(kRailsSize);
    Header header = Transfer(1, id, kRailsSize, Protocol::kWrite);
    header.flags = kProtocolGiven;
    header.remote = peer.range();
    header.remote.further = {1, {{{rail, 4711}}}};
    return header;
  }
};

// A WRITE over both rails, whatever of it is under way when the puller gives both back, and then
// wants it after all.
TEST(HostilePullersWritesTest, NothingIsWantedOverQueuePairsThatWereGivenBack) {
  int violations = 0;
  for (int delay = 0; delay < 200; delay += 10) {
    World world;
    NodeOptions options = TwoRails();
    options.endpoint.chunk_size = 16 << 10;
    Node& node = world.Add(options);
    RawPeer peer(world, 99);
    peer.hello.rails = 2;
    peer.Connect(node.service);
    ASSERT_TRUE(world.RunUntil([&] { return peer.up(); }, Seconds(1)));
    const RawPeer::Received* rails = peer.Await(MessageKind::kRails);
    ASSERT_NE(rails, nullptr);
    peer.Connect((*DecodeRails(rails->body))[1], {2});
    ASSERT_TRUE(world.RunUntil([&] { return node.endpoint->counters().rails_joined == 1; }, Seconds(1)));
    peer.Bulk(verbs::Opcode::kSend, {}, 4, 0, 1);
    peer.Bulk(verbs::Opcode::kSend, {}, 4, 0, 2);
    world.RunFor(Milliseconds(1));
    const base::ObjectId id = node.AddObject(1'000'000);
    Header header = Transfer(1, id, 1'000'000, Protocol::kWrite);
    header.flags = kProtocolGiven;
    header.remote = peer.range();
    header.remote.further = {1, {{{1, peer.range().rkey}}}};
    peer.Send(header);
    world.RunFor(base::Microseconds(delay));
    peer.Send(Down(0));
    peer.Send(Down(1), EncodeWanted({{1, 0}}));
    world.RunFor(Seconds(1));
    violations += static_cast<int>(node.endpoint->counters().protocol_errors);
  }
  EXPECT_GT(violations, 0);
}

TEST_F(HostilePullersRailsTest, NothingIsWantedOfAPrimaryRailThatGoes) {
  peer.Send(Down(0), EncodeWanted({{1, 0}}));
  ExpectViolation();
}

TEST_F(HostilePullersRailsTest, ARailThatTheConnectionLacksCannotDropOut) {
  peer.Send(Down(2));
  ExpectViolation();
}

TEST_F(HostilePullersRailsTest, OnlyTheOwnerNamesRails) {
  peer.Send(RailsMessage(), EncodeRails({peer.service(), peer.service()}));
  ExpectViolation();
}

TEST_F(HostilePullersRailsTest, AKeyOfThePrimaryRailTwice) {
  peer.Send(TransferWithKeyOf(0));
  ExpectViolation();
}

TEST_F(HostilePullersRailsTest, AKeyOfARailThatTheConnectionLacks) {
  peer.Send(TransferWithKeyOf(3));
  ExpectViolation();
}

TEST_F(HostilePullersRailsTest, AKeyOfARailThatHasNotJoinedIsNotUsed) {
  peer.Bulk(verbs::Opcode::kSend, {}, 4);  // the greeting
  peer.Send(TransferWithKeyOf(1));
  EXPECT_TRUE(world.RunUntil([&] { return node.endpoint->counters().serves_ok == 1; }, Seconds(1)));
  EXPECT_EQ(node.endpoint->counters().rail_bytes[0], kRailsSize);
  ExpectNothing();
}

TEST_F(HostilePullersRailsTest, WantedWritesThatCannotExist) {
  std::vector<uint8_t> body = EncodeWanted({{1, 0}, {2, 0}});
  body.pop_back();
  peer.Send(Down(1), body);
  ExpectViolation();
}

TEST_F(HostilePullersRailsTest, AMissingRailMayDropOutAnyNumberOfTimes) {
  for (size_t i = 1; i <= 20; ++i) {
    peer.Send(Down(1), EncodeWanted({{i, 0xffff}, {UINT64_MAX, 0}}));
    world.RunFor(Milliseconds(1));
    EXPECT_EQ(peer.Count(MessageKind::kRailDown), i) << "each is answered, so that a puller can join again";
  }
  ExpectNothing();
}

TEST_F(HostilePullersRailsTest, AQueuePairMustComeToItsRailAndKnowItsConnection) {
  for (uint8_t queue : {0, 1}) {
    RawPeer stranger(world, 98);
    stranger.hello.rails = 2;
    // Its messages would come to rail 1; its bulk queue pair is of a connection that is not there.
    stranger.hello.primary = 1;
    stranger.Connect(node.service, {queue});
    EXPECT_TRUE(world.RunUntil([&] { return stranger.rejected(); }, Seconds(1))) << int{queue};
  }
  ExpectNothing();
}

// ---- an owner

class HostileOwnersRailsTest : public HostileRailsTest {
 protected:
  void Ask() {
    peer.Listen();
    PullRequest request;
    request.id = base::ObjectId::FromName("x");
    request.owner = peer.service();
    request.size = {kRailsSize, 0};
    request.protocol = Protocol::kRead;
    outcome = node.Pull(request);
    const RawPeer::Received* transfer = peer.Await(MessageKind::kTransfer);
    if (transfer != nullptr) number = transfer->header.transfer;
    FillObject(request.id, peer.memory().subspan(0, kRailsSize));
  }
  Header DataWithKeyOf(uint32_t rail) {
    Header header = Plain(MessageKind::kData, number, Protocol::kRead);
    header.deadline_ms = 5000;
    header.size = {kRailsSize, 0};
    header.remote = peer.range();
    header.remote.further = {1, {{{rail, 4711}}}};
    return header;
  }

  std::shared_ptr<Outcome> outcome;
  uint64_t number = 0;
};

TEST_F(HostileOwnersRailsTest, RailsBeyondTheRequest) {
  peer.hello.rails = 3;
  peer.Listen();
  PullRequest request;
  request.owner = peer.service();
  outcome = node.Pull(request);
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable);
  ExpectViolation();
}

TEST_F(HostileOwnersRailsTest, ANumberOfRailsThatItsHelloDidNotName) {
  Ask();
  peer.Send(RailsMessage(), EncodeRails({peer.service(), peer.service(), peer.service()}));
  ExpectViolation();
}

TEST_F(HostileOwnersRailsTest, RailsTwice) {
  Ask();
  peer.Send(RailsMessage(), EncodeRails({peer.service(), peer.service()}));
  peer.Send(RailsMessage(), EncodeRails({peer.service(), peer.service()}));
  ExpectViolation();
}

TEST_F(HostileOwnersRailsTest, InvalidRails) {
  Ask();
  peer.Send(RailsMessage(), std::vector<uint8_t>(39, 1));
  ExpectViolation();
}

TEST_F(HostileOwnersRailsTest, ARailDropsOutBeforeItWasNamed) {
  Ask();
  peer.Send(Down(1));
  ExpectViolation();
}

TEST_F(HostileOwnersRailsTest, AnOwnerThatWaitsForWrites) {
  Ask();
  peer.Send(RailsMessage(), EncodeRails({peer.service(), peer.service()}));
  peer.Send(Down(1), EncodeWanted({{1, 0}}));
  ExpectViolation();
}

TEST_F(HostileOwnersRailsTest, AKeyOfThePrimaryRailTwice) {
  Ask();
  peer.Send(DataWithKeyOf(0));
  ExpectViolation();
}

TEST_F(HostileOwnersRailsTest, AKeyOfARailThatTheConnectionLacks) {
  Ask();
  peer.Send(DataWithKeyOf(2));
  ExpectViolation();
}

TEST_F(HostileOwnersRailsTest, UnreachableRailsCostOnlyTries) {
  Ask();
  peer.on_message = [this](const RawPeer::Received& message) {
    if (message.header.kind == MessageKind::kRailDown && message.header.rail == 0) peer.Send(Down(0));
  };
  peer.Send(RailsMessage(), EncodeRails({peer.service(), *verbs::Address::Parse("10.0.9.9:7000")}));
  peer.Send(DataWithKeyOf(1));
  ASSERT_TRUE(world.Finish(outcome, Milliseconds(100)));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  world.RunFor(Seconds(60));
  const auto downs = [this] {
    return std::count_if(peer.received.begin(), peer.received.end(), [](const RawPeer::Received& one) {
      return one.header.kind == MessageKind::kRailDown && one.header.rail == 1;
    });
  };
  EXPECT_EQ(downs(), 1) << "it waits for the owner's word before it tries again";
  peer.Send(Down(1));
  world.RunFor(Seconds(15));
  EXPECT_EQ(downs(), 2);
  ExpectNothing();
}

}  // namespace
}  // namespace tokamak::transport::testing
