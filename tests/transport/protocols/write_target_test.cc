// The memory that a peer WRITEs into is opened by a memory window, if there can be one, and closed
// before anybody sees the object.
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lib/transport/limits.h"
#include "lib/transport/memory/window_pool.h"
#include "lib/transport/messages/message.h"
#include "tests/transport/limited_device.h"
#include "tests/transport/posting_device.h"
#include "tests/transport/rails_world.h"
#include "tests/transport/raw_peer.h"

namespace tokamak::transport::testing {
namespace {

using base::Microseconds;
using base::Milliseconds;
using base::Seconds;
using verbs::Opcode;

constexpr uint64_t kTargetMiB = 1 << 20;

class WriteTargetTest : public ::testing::Test {
 protected:
  explicit WriteTargetTest(const WorldOptions& options = Fast()) : world(options), owner(world.Add()) {}

  // A puller that registers and posts under our eyes.
  Node& AddPuller(NodeOptions options = {}) {
    options.wrap = [this](std::unique_ptr<verbs::Device> device) {
      DeviceHooks hooks;
      hooks.post_send = [this](verbs::QueuePair& queue_pair, absl::Span<const verbs::SendRequest> requests) {
        return OnPost(queue_pair, requests);
      };
      hooks.on_register = [this](absl::Span<uint8_t>, verbs::Access) {
        ++registrations;
        return absl::OkStatus();
      };
      return WithHooks(std::move(device), std::move(hooks));
    };
    return world.Add(options);
  }

  static void PullWell(World& world, Node& puller, Node& owner, Protocol protocol, uint64_t size = 100000) {
    auto outcome = puller.Pull(owner, owner.AddObject(size), protocol);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  }
  // The bulk queue pairs are up: from now on windows can be bound.
  void Warm(Node& puller) { PullWell(world, puller, owner, Protocol::kRead); }

  static uint64_t Bound(const Node& node) { return node.endpoint->counters().windows_bound; }
  static uint64_t Registered(const Node& node) { return node.endpoint->counters().regions_registered; }
  static uint64_t Windows(const Node& node) { return node.endpoint->use().memory_windows; }

  World world;
  Node& owner;
  uint64_t registrations = 0;
  bool hold[16] = {};  // requests by opcode, until LetGo
  bool spoil_binds = false;

  // Passes the held requests on to the device.
  void LetGo() {
    std::fill(std::begin(hold), std::end(hold), false);
    for (auto& [queue_pair, request] : std::exchange(held, {})) {
      EXPECT_TRUE(queue_pair->PostSend(absl::MakeConstSpan(&request, 1)).ok());
    }
  }
  void Hold(Opcode opcode) { hold[static_cast<size_t>(opcode)] = true; }
  std::vector<std::pair<verbs::QueuePair*, verbs::SendRequest>> held;

 private:
  verbs::PostResult OnPost(verbs::QueuePair& queue_pair, absl::Span<const verbs::SendRequest> requests) {
    verbs::PostResult all;
    for (verbs::SendRequest request : requests) {
      if (hold[static_cast<size_t>(request.opcode)]) {
        held.emplace_back(&queue_pair, request);
        ++all.accepted;
        continue;
      }
      if (spoil_binds && request.opcode == Opcode::kBindWindow) request.bind.length = uint64_t{1} << 40;
      const verbs::PostResult one = queue_pair.PostSend(absl::MakeConstSpan(&request, 1));
      all.accepted += one.accepted;
      all.status = one.status;
      if (!one.ok()) break;
    }
    return all;
  }
};

// ---- what it costs

TEST_F(WriteTargetTest, PullsByWriteRegisterNothingOnceTheQueuePairsAreUp) {
  Node& puller = AddPuller();
  Warm(puller);
  const uint64_t before = registrations;
  for (int i = 0; i < 200; ++i) PullWell(world, puller, owner, Protocol::kWrite, 1000 + i * 1000);
  EXPECT_EQ(registrations, before);
  EXPECT_EQ(Registered(puller), 0u);
  EXPECT_EQ(Bound(puller), 200u);
  EXPECT_EQ(Windows(puller), 1u) << "the same one each time";
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 1u);
  world.ExpectClean();
}

TEST_F(WriteTargetTest, ManyAtOnceHaveAWindowEach) {
  Node& puller = AddPuller();
  Warm(puller);
  const uint64_t before = registrations;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<Outcome>> outcomes;
    for (int i = 0; i < 100; ++i) outcomes.push_back(puller.Pull(owner, owner.AddObject(50000), Protocol::kWrite));
    for (const auto& outcome : outcomes) {
      ASSERT_TRUE(world.Finish(outcome));
      EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    }
  }
  EXPECT_EQ(registrations, before);
  EXPECT_EQ(Bound(puller), 300u);
  EXPECT_LE(Windows(puller), 100u);
  world.ExpectClean();
}

// It is asked for while the queue pairs are still being connected.
TEST_F(WriteTargetTest, TheFirstPullOfAConnectionDoesNotWaitForAWindow) {
  Node& puller = AddPuller();
  PullWell(world, puller, owner, Protocol::kWrite);
  EXPECT_EQ(Registered(puller), 1u);
  EXPECT_EQ(Bound(puller), 0u);
  PullWell(world, puller, owner, Protocol::kWrite);
  EXPECT_EQ(Registered(puller), 1u);
  EXPECT_EQ(Bound(puller), 1u);
}

TEST_F(WriteTargetTest, TargetsBeyondThePoolsBoundAreRegistered) {
  constexpr uint32_t kOwners = 3, kEach = 100;  // a connection has room for that many writes
  static_assert(kOwners * kEach > WindowPool::kMaxWindows, "more than there are windows");
  Node& puller = AddPuller();
  std::vector<Node*> owners;
  for (uint32_t i = 0; i < kOwners; ++i) {
    owners.push_back(&world.Add());
    PullWell(world, puller, *owners.back(), Protocol::kRead);
    owners.back()->source.SetDelay(Milliseconds(10));  // so that all are asked for before the first ends
  }
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (uint32_t i = 0; i < kEach; ++i) {
    for (Node* from : owners) outcomes.push_back(puller.Pull(*from, from->AddObject(10000), Protocol::kWrite));
  }
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  }
  EXPECT_EQ(Windows(puller), WindowPool::kMaxWindows);
  EXPECT_EQ(Bound(puller), WindowPool::kMaxWindows);
  EXPECT_EQ(Registered(puller), kOwners * kEach - WindowPool::kMaxWindows);
  world.ExpectClean();
}

// ---- where there are none

TEST_F(WriteTargetTest, WithoutWindowsEachTargetIsRegistered) {
  NodeOptions without, on_demand, two_queue_pairs, iwarp;
  without.wrap = WithoutWindows;
  on_demand.on_demand = true;
  two_queue_pairs.endpoint.bulk_queue_pairs = 2;
  iwarp.like_iwarp = true;
  for (const NodeOptions& options : {without, on_demand, two_queue_pairs, iwarp}) {
    Node& puller = world.Add(options);
    Node& peer = world.Add(options);
    PullWell(world, puller, peer, Protocol::kRead);
    const uint64_t before = Registered(puller);
    for (int i = 0; i < 3; ++i) PullWell(world, puller, peer, Protocol::kWrite);
    EXPECT_EQ(Registered(puller) - before, 3u);
    EXPECT_EQ(Bound(puller), 0u);
    EXPECT_EQ(Windows(puller), 0u);
  }
  world.ExpectClean();
}

// It costs the connection once.
TEST_F(WriteTargetTest, ADeviceThatFailsToBindIsNotAskedAgain) {
  Node& puller = AddPuller();
  Warm(puller);
  spoil_binds = true;
  auto outcome = puller.Pull(owner, owner.AddObject(kTargetMiB), Protocol::kWrite);
  ASSERT_TRUE(world.Finish(outcome));
  EXPECT_TRUE(absl::IsUnavailable(outcome->status)) << outcome->status;
  for (int i = 0; i < 3; ++i) PullWell(world, puller, owner, Protocol::kWrite);
  EXPECT_EQ(Bound(puller), 1u);
  EXPECT_EQ(Registered(puller), 3u);
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 2u);
  world.ExpectClean();
}

// ---- in which order

TEST_F(WriteTargetTest, TheOwnerGetsAKeyOnceItIsBound) {
  Node& puller = AddPuller();
  Warm(puller);
  const uint64_t asked = owner.source.pins_ever();
  Hold(Opcode::kBindWindow);
  auto outcome = puller.Pull(owner, owner.AddObject(kTargetMiB), Protocol::kWrite);
  world.RunFor(Seconds(1));
  EXPECT_EQ(held.size(), 1u);
  EXPECT_EQ(owner.source.pins_ever(), asked);
  EXPECT_FALSE(outcome->done);
  LetGo();
  ASSERT_TRUE(world.Finish(outcome));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  world.ExpectClean();
}

TEST_F(WriteTargetTest, APullIsDoneWhenItsWindowIsClosed) {
  Node& puller = AddPuller();
  Warm(puller);
  Hold(Opcode::kLocalInvalidate);
  auto outcome = puller.Pull(owner, owner.AddObject(kTargetMiB), Protocol::kWrite);
  world.RunFor(Milliseconds(100));
  EXPECT_EQ(held.size(), 1u);
  EXPECT_EQ(owner.source.pins(), 0u) << "all of it is written";
  EXPECT_FALSE(outcome->done);
  LetGo();
  ASSERT_TRUE(world.Finish(outcome, Milliseconds(1)));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  world.ExpectClean();
}

// ---- ending early

TEST_F(WriteTargetTest, APullMayBeCancelledWhileItsWindowIsOpening) {
  Node& puller = AddPuller();
  Warm(puller);
  const uint64_t asked = owner.source.pins_ever();
  Hold(Opcode::kBindWindow);
  auto outcome = puller.Pull(owner, owner.AddObject(kTargetMiB), Protocol::kWrite);
  world.RunFor(Microseconds(100));
  puller.endpoint->CancelPull(outcome->pull);
  world.RunFor(Milliseconds(10));
  EXPECT_FALSE(outcome->done) << "the window may be open by now";
  LetGo();
  ASSERT_TRUE(world.Finish(outcome, Milliseconds(1)));
  EXPECT_TRUE(absl::IsCancelled(outcome->status)) << outcome->status;
  EXPECT_EQ(owner.source.pins_ever(), asked) << "it was not asked for";
  PullWell(world, puller, owner, Protocol::kWrite);
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 1u);
  EXPECT_EQ(Windows(puller), 1u);
  world.ExpectClean();
}

// All moments of it, one after the other.
TEST_F(WriteTargetTest, APullThatIsCancelledInTheMiddleKeepsConnectionAndWindow) {
  Node& puller = AddPuller();
  Warm(puller);
  const uint64_t before = registrations;
  for (int64_t after = 0; after < 120; after += 3) {
    auto outcome = puller.Pull(owner, owner.AddObject(kTargetMiB), Protocol::kWrite);
    world.RunFor(Microseconds(after));
    puller.endpoint->CancelPull(outcome->pull);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(outcome->status.ok() ? outcome->right : absl::IsCancelled(outcome->status)) << outcome->status;
    PullWell(world, puller, owner, Protocol::kWrite);
  }
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 1u);
  EXPECT_EQ(registrations, before);
  EXPECT_EQ(Windows(puller), 1u);
  world.ExpectClean();
}

TEST_F(WriteTargetTest, AConnectionThatFailsInTheMiddleTakesItsWindowsAlong) {
  NodeOptions options;
  options.endpoint.reliability.ack_timeout = Milliseconds(1);
  Node& puller = AddPuller(options);
  Warm(puller);
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 5; ++i) outcomes.push_back(puller.Pull(owner, owner.AddObject(2 * kTargetMiB), Protocol::kWrite));
  world.RunFor(Microseconds(60));  // of the 170 that the first takes
  world.CutRail(puller, owner, 0);
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(absl::IsUnavailable(outcome->status)) << outcome->status;
  }
  world.MendRail(puller, owner, 0);
  Warm(puller);
  for (int i = 0; i < 3; ++i) PullWell(world, puller, owner, Protocol::kWrite);
  EXPECT_EQ(Windows(puller), 1u) << "those that went with their queue pair are dropped";
  EXPECT_EQ(Bound(puller), 8u);
  EXPECT_EQ(Registered(puller), 0u);
  world.ExpectClean();
}

TEST_F(WriteTargetTest, AnEndpointMayEndWhileWindowsAreOpening) {
  for (Opcode held_back : {Opcode::kBindWindow, Opcode::kLocalInvalidate}) {
    Node& puller = AddPuller();
    Warm(puller);
    Hold(held_back);
    auto outcome = puller.Pull(owner, owner.AddObject(kTargetMiB), Protocol::kWrite);
    world.RunFor(Milliseconds(10));
    EXPECT_EQ(held.size(), 1u);
    puller.DropEndpoint();
    held.clear();
    LetGo();
    EXPECT_TRUE(outcome->dropped);
    EXPECT_FALSE(outcome->done);
  }
}

// ---- owners that write when they must not

class LateWriteTest : public WriteTargetTest {
 protected:
  LateWriteTest() : peer(world, 99), puller(AddPuller()) {
    peer.Listen();
    request.id = base::ObjectId::FromName("x");
    request.owner = peer.service();
    request.size = {60000, 5000};
    request.deadline = Seconds(5);
    request.protocol = Protocol::kWrite;
    FillObject(request.id, peer.memory().subspan(0, 65000));
    auto first = puller.Pull(request);  // for which the queue pairs are made
    WriteIt(peer.Await(MessageKind::kTransfer)->header);
    EXPECT_TRUE(world.Finish(first, Seconds(1)) && first->right) << first->status;
    peer.received.clear();
  }

  // A pull that has been asked for, by a window.
  std::shared_ptr<Outcome> Ask() {
    auto outcome = puller.Pull(request);
    asked = peer.Await(MessageKind::kTransfer)->header;
    EXPECT_EQ(Bound(puller), 1u);
    return outcome;
  }
  void WriteIt(const Header& transfer) {
    world.RunFor(Milliseconds(1));
    const Note note{static_cast<uint32_t>(transfer.transfer) & Note::kNumberMask};
    peer.Bulk(Opcode::kWriteWithImm, transfer.remote, 65000, note.Pack());
    ++posted;
  }
  // Writes something else through the key that it was given.
  verbs::CompletionStatus WriteOnceMore() {
    peer.memory()[0] ^= 1;
    peer.Bulk(Opcode::kWrite, asked.remote, 65000);
    ++posted;
    EXPECT_TRUE(world.RunUntil([&] { return peer.bulk_statuses.size() == posted; }, Seconds(3)));
    return peer.bulk_statuses.back();
  }

  RawPeer peer;
  Node& puller;
  PullRequest request;
  Header asked;
  size_t posted = 0;  // by the peer, over bulk queue pairs
};

TEST_F(LateWriteTest, ALateWriteChangesNothingOnceThePullIsDone) {
  auto outcome = Ask();
  WriteIt(asked);
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  EXPECT_EQ(WriteOnceMore(), verbs::CompletionStatus::kRemoteAccess);
  EXPECT_TRUE(IsObject(request.id, outcome->memory)) << "a sealed object was written";
}

// As long as the device has not taken the key back the pull is not done: what is written then is
// the owner's own object still.
TEST_F(LateWriteTest, AWriteIsPossibleUntilThePullIsDone) {
  Hold(Opcode::kLocalInvalidate);
  auto outcome = Ask();
  WriteIt(asked);
  world.RunFor(Milliseconds(10));
  EXPECT_EQ(WriteOnceMore(), verbs::CompletionStatus::kSuccess);
  EXPECT_FALSE(outcome->done);
  LetGo();
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  const std::vector<uint8_t> sealed(outcome->memory.begin(), outcome->memory.end());
  EXPECT_EQ(WriteOnceMore(), verbs::CompletionStatus::kRemoteAccess);
  EXPECT_TRUE(std::equal(sealed.begin(), sealed.end(), outcome->memory.begin())) << "a sealed object was written";
}

// The device says nothing of the invalidate: after a grace the window is dropped, which is proof,
// too.
TEST_F(LateWriteTest, ALateWriteChangesNothingThoughTheInvalidateHangs) {
  Hold(Opcode::kLocalInvalidate);
  auto outcome = Ask();
  WriteIt(asked);
  const base::Time began = world.time.Now();
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  EXPECT_GE(world.time.Now(), began + kDrainGrace);
  EXPECT_LT(world.time.Now(), began + kDrainGrace + Milliseconds(10));
  EXPECT_EQ(Windows(puller), 0u);
  EXPECT_EQ(WriteOnceMore(), verbs::CompletionStatus::kRemoteAccess);
  EXPECT_TRUE(IsObject(request.id, outcome->memory)) << "a sealed object was written";
}

TEST_F(LateWriteTest, ALateWriteChangesNothingAfterACancel) {
  auto outcome = Ask();
  puller.endpoint->CancelPull(outcome->pull);
  world.RunFor(Milliseconds(100));
  EXPECT_FALSE(outcome->done) << "the owner may still be writing";
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_TRUE(absl::IsCancelled(outcome->status)) << outcome->status;
  EXPECT_EQ(WriteOnceMore(), verbs::CompletionStatus::kRemoteAccess);
  world.ExpectClean();
}

TEST_F(LateWriteTest, AWriteIsConfinedToTheTargetWhileThePullRuns) {
  auto outcome = Ask();
  asked.remote.address += 1;
  EXPECT_EQ(WriteOnceMore(), verbs::CompletionStatus::kRemoteAccess);
  ASSERT_TRUE(world.Finish(outcome));
  EXPECT_FALSE(outcome->status.ok());
  world.ExpectClean();
}

// ---- several rails

class WriteTargetRailsTest : public WriteTargetTest {
 protected:
  // Until all rails have joined.
  void Warm(Node& puller, Node& from, uint64_t rails) {
    PullWell(world, puller, from, Protocol::kRead);
    ASSERT_TRUE(world.RunUntil(
        [&] {
          return puller.endpoint->counters().rails_joined == rails && from.endpoint->counters().rails_joined == rails;
        },
        Seconds(1)));
    world.RunFor(Milliseconds(1));  // the greeting
  }
};

TEST_F(WriteTargetRailsTest, EachRailHasAWindowOfItsOwn) {
  Node& from = world.Add(WithRails(3));
  Node& puller = AddPuller(WithRails(3));
  Warm(puller, from, 2);
  const uint64_t before = registrations;
  for (int i = 0; i < 10; ++i) PullWell(world, puller, from, Protocol::kWrite, 4 * kTargetMiB);
  EXPECT_EQ(registrations, before);
  EXPECT_EQ(Bound(puller), 30u);
  EXPECT_EQ(Windows(puller), 3u);
  world.RunFor(Milliseconds(1));
  for (uint32_t rail = 0; rail < 3; ++rail) {
    EXPECT_GT(from.endpoint->counters().rail_bytes[rail], 10 * kTargetMiB) << "over each of them";
  }
  world.ExpectClean();
}

TEST_F(WriteTargetRailsTest, ARailThatDropsOutTakesItsWindowAlong) {
  for (int64_t after = 0; after < 400; after += 20) {
    World w(Fast());
    Node& from = w.Add(WithRails(2));
    Node& puller = w.Add(WithRails(2));
    PullWell(w, puller, from, Protocol::kRead);
    ASSERT_TRUE(w.RunUntil([&] { return from.endpoint->counters().rails_joined == 1; }, Seconds(1)));
    w.RunFor(Milliseconds(1));
    auto outcome = puller.Pull(from, from.AddObject(4 * kTargetMiB), Protocol::kWrite);
    w.RunFor(Microseconds(after));
    w.CutRail(puller, from, 1);
    ASSERT_TRUE(w.Finish(outcome, Seconds(3)));
    EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
    for (int i = 0; i < 3; ++i) PullWell(w, puller, from, Protocol::kWrite);
    EXPECT_EQ(Registered(puller), 0u);
    EXPECT_EQ(puller.endpoint->counters().connections_lost, 0u);
    w.ExpectClean();
  }
}

// A bind that waits on one rail holds the question up, not for longer than that rail lives.
TEST_F(WriteTargetRailsTest, ARailThatDropsOutWhileItsWindowIsOpeningIsSkipped) {
  Node& from = world.Add(WithRails(2));
  Node& puller = AddPuller(WithRails(2));
  Warm(puller, from, 1);
  Hold(Opcode::kBindWindow);
  auto outcome = puller.Pull(from, from.AddObject(kTargetMiB), Protocol::kWrite);
  world.RunFor(Microseconds(10));
  ASSERT_EQ(held.size(), 2u);
  EXPECT_TRUE(held[0].first->PostSend(absl::MakeConstSpan(&held[0].second, 1)).ok());  // the primary rail's
  held.clear();
  world.RunFor(Microseconds(10));
  world.CutRail(puller, from, 1);
  auto next = puller.Pull(from, from.AddObject(4 * kTargetMiB), Protocol::kRead);  // by which the cut is noticed
  ASSERT_TRUE(world.Finish(next, Seconds(3)));
  ASSERT_TRUE(world.Finish(outcome, Seconds(3)));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  EXPECT_EQ(puller.endpoint->counters().rails_lost, 1u);
  world.ExpectClean();
}

// A rail that was lost and joined again during one long write has other queue pairs then, for whose
// peer the window was not bound: the write does not go there.
TEST_F(WriteTargetRailsTest, AWriteDoesNotReturnToARailThatRejoined) {
  WorldOptions slow = Fast();
  slow.link.picoseconds_per_byte = 200000;  // 40 Mb/s
  World w(slow);
  NodeOptions options = WithRails(3);
  options.endpoint.chunk_size = 16 * 1024;
  options.endpoint.reliability.ack_timeout = Milliseconds(50);
  Node& from = w.Add(options);
  Node& puller = w.Add(options);
  PullWell(w, puller, from, Protocol::kRead);
  ASSERT_TRUE(w.RunUntil([&] { return from.endpoint->counters().rails_joined == 2; }, Seconds(1)));
  w.RunFor(Milliseconds(1));
  auto outcome = puller.Pull(from, from.AddObject(80 * kTargetMiB), Protocol::kWrite);
  w.RunFor(Milliseconds(100));
  w.CutRail(puller, from, 1);
  ASSERT_TRUE(w.RunUntil([&] { return from.endpoint->counters().rails_lost == 1; }, Seconds(3)));
  w.MendRail(puller, from, 1);
  ASSERT_TRUE(w.RunUntil([&] { return from.endpoint->counters().rails_joined == 3; }, Seconds(8)));
  EXPECT_FALSE(outcome->done);
  w.CutRail(puller, from, 2);
  ASSERT_TRUE(w.Finish(outcome));
  EXPECT_TRUE(outcome->status.ok() && outcome->right) << outcome->status;
  EXPECT_EQ(from.endpoint->counters().rails_lost, 2u);
  EXPECT_EQ(puller.endpoint->counters().connections_lost, 0u);
  w.ExpectClean();
}

}  // namespace
}  // namespace tokamak::transport::testing
