// Memory windows: a key for a part of a region, given and taken back by requests in the send
// queue's order.
#include <algorithm>

#include "absl/status/status.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;

constexpr size_t kWindowSize = 10000;
constexpr auto kBound = CompletionOpcode::kBindWindow;
constexpr auto kInvalidated = CompletionOpcode::kLocalInvalidate;
constexpr auto kWritten = CompletionOpcode::kWrite;

Work Bind(uint64_t id, MemoryWindow& window, Memory& memory, size_t offset, size_t length, Access access) {
  Work work = Send(id, {});
  work.request.opcode = Opcode::kBindWindow;
  work.request.bind = {&window, memory.region(), memory.data() + offset, length, access};
  return work;
}

Work LocalInvalidate(uint64_t id, uint32_t rkey) {
  Work work = Send(id, {});
  work.request.opcode = Opcode::kLocalInvalidate;
  work.request.rkey = rkey;
  return work;
}

Work SendWithInvalidate(uint64_t id, std::vector<Sge> pieces, uint32_t rkey) {
  Work work = Send(id, std::move(pieces));
  work.request.opcode = Opcode::kSendWithInvalidate;
  work.request.rkey = rkey;
  return work;
}

// The passive side binds windows on memory without remote rights; the active side uses them.
class WindowsTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    TOKAMAK_NEEDS(memory_windows);
    pair_ = Connect();
    here_ = std::make_unique<Memory>(*owner().domain, kWindowSize, 1, kLocalWrite | kWindowBind);
    there_ = std::make_unique<Memory>(*user().domain, kWindowSize, 2);
    auto window = owner().domain->CreateMemoryWindow();
    ASSERT_TRUE(window.ok()) << window.status();
    window_ = *std::move(window);
  }

  End& owner() { return pair_->passive; }
  End& user() { return pair_->active; }
  Memory& owned() { return *here_; }
  Memory& users() { return *there_; }
  MemoryWindow& window() { return *window_; }
  void DropWindow() { window_.reset(); }
  std::unique_ptr<MemoryWindow> TakeWindow() { return std::move(window_); }

  void MustBind(size_t offset, size_t length, Access access) {
    owner().MustPost({Bind(1, window(), owned(), offset, length, access)});
    EXPECT_THAT(owner().AwaitSends(1), ElementsAre(Done(1, kBound)));
  }

  // The next completion of the owner's is that of a window request that could not be carried out,
  // and its queue pair ends.
  void ExpectWindowFault(uint64_t id) {
    const Completions done = owner().AwaitSends(1);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].id, id);
    EXPECT_TRUE(done[0].status == CompletionStatus::kWindowBind ||
                done[0].status == CompletionStatus::kLocalProtection ||
                done[0].status == CompletionStatus::kLocalQpOperation)
        << ToString(done[0].status);
    EXPECT_EQ(owner().state(), QueuePairState::kError);
  }

  // The user's writes fill the window over and over; once the window is closed nothing changes the
  // owner's memory any more.
  void ExpectNothingIsWrittenAfter(const std::function<void()>& close) {
    MustBind(0, kWindowSize, kRemoteWrite);
    std::vector<Work> writes;
    for (uint64_t i = 0; i < 60; ++i) writes.push_back(Write(i, {users().whole()}, owned().remote(), window().rkey()));
    user().MustPost(writes);
    Drive([&] { return owned().Peek(kWindowSize - 1) == users().bytes()[kWindowSize - 1]; });
    close();
    owned().Fill(9);
    LookOn();
    EXPECT_TRUE(owned().Untouched());
    const Completions done = user().AwaitSends(writes.size());
    EXPECT_FALSE(done.empty());
  }

  void ExpectDenied(Fault fault, Work work) {
    work.request.id = 2;
    user().MustPost({work});
    ExpectFault(user(), fault, 2);
    EXPECT_TRUE(owned().Untouched());
  }

 private:
  std::unique_ptr<Pair> pair_;
  std::unique_ptr<Memory> here_, there_;
  std::unique_ptr<MemoryWindow> window_;
};
TOKAMAK_CONFORMANCE(WindowsTest);

TEST_P(WindowsTest, AWindowOpensItsPartOfTheRegion) {
  MustBind(100, 5000, kRemoteWrite | kRemoteRead);
  Memory back(*user().domain, 5000, 3);
  user().MustPost({Write(1, {users().piece(0, 5000)}, owned().remote(100), window().rkey()),
                   Read(2, {back.whole()}, owned().remote(100), window().rkey())});
  EXPECT_THAT(user().AwaitSends(2), ElementsAre(Done(1, kWritten), Done(2, CompletionOpcode::kRead)));
  EXPECT_TRUE(owned().Untouched(0, 100));
  EXPECT_TRUE(Same(owned().bytes(100, 5000), users().bytes(0, 5000)));
  EXPECT_TRUE(owned().Untouched(5100, kWindowSize - 5100));
  EXPECT_TRUE(back.Holds(2));
}

TEST_P(WindowsTest, WhatIsBehindAWindowIsDenied) {
  MustBind(100, 5000, kRemoteWrite);
  ExpectDenied(Fault::kRemoteBounds, Write(0, {users().piece(0, 5000)}, owned().remote(101), window().rkey()));
}

TEST_P(WindowsTest, WhatIsBeforeAWindowIsDenied) {
  MustBind(100, 5000, kRemoteWrite);
  ExpectDenied(Fault::kRemoteBounds, Write(0, {users().piece(0, 10)}, owned().remote(99), window().rkey()));
}

TEST_P(WindowsTest, AWindowForReadingCannotBeWritten) {
  MustBind(0, kWindowSize, kRemoteRead);
  ExpectDenied(Fault::kRemoteRight, Write(0, {users().piece(0, 10)}, owned().remote(), window().rkey()));
}

TEST_P(WindowsTest, TheRegionsOwnKeyStaysClosed) {
  MustBind(0, kWindowSize, kRemoteWrite);
  ExpectDenied(Fault::kRemoteRight, Write(0, {users().piece(0, 10)}, owned().remote(), owned().rkey()));
}

TEST_P(WindowsTest, AnUnboundWindowOpensNothing) {
  ExpectDenied(Fault::kRemoteKey, Write(0, {users().piece(0, 10)}, owned().remote(), window().rkey()));
}

TEST_P(WindowsTest, InvalidatingClosesAWindow) {
  MustBind(0, kWindowSize, kRemoteWrite);
  const uint32_t rkey = window().rkey();
  owner().MustPost({LocalInvalidate(5, rkey)});
  EXPECT_THAT(owner().AwaitSends(1), ElementsAre(Done(5, kInvalidated)));
  ExpectDenied(Fault::kRemoteKey, Write(0, {users().piece(0, 10)}, owned().remote(), rkey));
}

TEST_P(WindowsTest, DroppingAWindowClosesIt) {
  MustBind(0, kWindowSize, kRemoteWrite);
  const uint32_t rkey = window().rkey();
  DropWindow();
  ExpectDenied(Fault::kRemoteKey, Write(0, {users().piece(0, 10)}, owned().remote(), rkey));
}

TEST_P(WindowsTest, EachBindGivesAnotherKey) {
  MustBind(0, 100, kRemoteWrite);
  const uint32_t first = window().rkey();
  owner().MustPost({LocalInvalidate(5, first)});
  EXPECT_THAT(owner().AwaitSends(1), ElementsAre(Done(5, kInvalidated)));
  MustBind(200, 100, kRemoteWrite);
  EXPECT_NE(window().rkey(), first);
  user().MustPost({Write(1, {users().piece(0, 100)}, owned().remote(200), window().rkey())});
  EXPECT_THAT(user().AwaitSends(1), ElementsAre(Done(1, kWritten)));
  EXPECT_TRUE(Same(owned().bytes(200, 100), users().bytes(0, 100)));
  owned().Fill(9);
  ExpectDenied(Fault::kRemoteKey, Write(0, {users().piece(0, 100)}, owned().remote(0), first));
}

TEST_P(WindowsTest, TheKeyIsKnownWhenBindHasBeenPosted) {
  Memory bell(*user().domain, 4, 7), word(*owner().domain, 4, 8);
  user().MustPostReceives({{1, {bell.whole()}}});
  owner().MustPost({Bind(1, window(), owned(), 0, kWindowSize, kRemoteWrite), Send(2, {word.whole()})});
  const uint32_t rkey = window().rkey();
  EXPECT_THAT(user().AwaitReceives(1), ElementsAre(Received(1, 4)));
  user().MustPost({Write(3, {users().whole()}, owned().remote(), rkey)});
  EXPECT_THAT(user().AwaitSends(1), ElementsAre(Done(3, kWritten)));
  EXPECT_TRUE(owned().Holds(2));
}

TEST_P(WindowsTest, APeerMayHandAKeyBackWithItsLastMessage) {
  MustBind(0, kWindowSize, kRemoteWrite);
  const uint32_t rkey = window().rkey();
  Memory sink(*owner().domain, 10, 5);
  owner().MustPostReceives({{1, {sink.whole()}}});
  user().MustPost(
      {Write(1, {users().whole()}, owned().remote(), rkey), SendWithInvalidate(2, {users().piece(0, 10)}, rkey)});
  EXPECT_THAT(owner().AwaitReceives(1),
              ElementsAre(AllOf(Done(1, CompletionOpcode::kReceive), Field(&Completion::has_invalidated, true),
                                Field(&Completion::invalidated_rkey, rkey), Field(&Completion::byte_count, 10u))));
  EXPECT_THAT(user().AwaitSends(2), ElementsAre(Done(1, kWritten), Done(2, CompletionOpcode::kSend)));
  EXPECT_TRUE(owned().Holds(2));
  owned().Fill(9);
  ExpectDenied(Fault::kRemoteKey, Write(0, {users().piece(0, 10)}, owned().remote(), rkey));
}

TEST_P(WindowsTest, APeerHandsBackNoKeyButThatOfAWindowOfItsConnection) {
  MustBind(0, kWindowSize, kRemoteWrite);
  Memory sink(*owner().domain, 10, 5);
  Memory open(*owner().domain, 10, 6);
  owner().MustPostReceives({{1, {sink.whole()}}});
  user().MustPost({SendWithInvalidate(2, {users().piece(0, 10)}, open.rkey())});
  ExpectFault(user(), Fault::kRemoteKey, 2);
}

TEST_P(WindowsTest, AWindowServesThePeerOfItsQueuePairOnly) {
  MustBind(0, kWindowSize, kRemoteWrite);
  End other_owner(backend(), 1, EndOptions(), &owner());
  End other_user(backend(), 0);
  Establish(backend(), other_user, other_owner, ConnectDefaults(), ConnectDefaults());
  Memory from(*other_user.domain, 10, 3);
  other_user.MustPost({Write(4, {from.whole()}, owned().remote(), window().rkey())});
  ExpectFault(other_user, Fault::kRemoteKey, 4);
  EXPECT_TRUE(owned().Untouched());
  user().MustPost({Write(5, {users().whole()}, owned().remote(), window().rkey())});
  EXPECT_THAT(user().AwaitSends(1), ElementsAre(Done(5, kWritten)));
}

TEST_P(WindowsTest, AWindowIsBoundAgainOnlyAfterItWasInvalidated) {
  MustBind(0, 100, kRemoteWrite);
  owner().MustPost({Bind(6, window(), owned(), 200, 100, kRemoteWrite)});
  ExpectWindowFault(6);
}

TEST_P(WindowsTest, BindsInvalidatesAndMessagesKeepTheirOrder) {
  Memory word(*owner().domain, 4, 8), bell(*user().domain, 8, 7);
  user().MustPostReceives({{1, {bell.piece(0, 4)}}, {2, {bell.piece(4, 4)}}});
  owner().MustPost({Bind(1, window(), owned(), 0, 100, kRemoteWrite), Send(2, {word.whole()})});
  const uint32_t first = window().rkey();
  owner().MustPost({LocalInvalidate(3, first).With(kFence), Bind(4, window(), owned(), 0, 100, kRemoteWrite),
                    Send(5, {word.whole()})});
  EXPECT_NE(window().rkey(), first);
  EXPECT_THAT(owner().AwaitSends(5),
              ElementsAre(Done(1, kBound), Done(2, CompletionOpcode::kSend), Done(3, kInvalidated), Done(4, kBound),
                          Done(5, CompletionOpcode::kSend)));
  user().MustPost({Write(1, {users().piece(0, 100)}, owned().remote(), window().rkey())});
  EXPECT_THAT(user().AwaitSends(1), ElementsAre(Done(1, kWritten)));
}

TEST_P(WindowsTest, BindingDisturbsNoWriteThatIsInFlight) {
  MustBind(0, kWindowSize / 2, kRemoteWrite);
  auto second = owner().domain->CreateMemoryWindow();
  ASSERT_TRUE(second.ok()) << second.status();
  std::vector<Work> writes;
  for (uint64_t i = 0; i < 20; ++i) {
    writes.push_back(Write(i, {users().piece(0, kWindowSize / 2)}, owned().remote(), window().rkey()).Unsignaled());
  }
  writes.push_back(Write(20, {users().piece(0, kWindowSize / 2)}, owned().remote(), window().rkey()));
  user().MustPost(writes);
  owner().MustPost({Bind(7, **second, owned(), kWindowSize / 2, kWindowSize / 2, kRemoteWrite)});
  EXPECT_THAT(owner().AwaitSends(1), ElementsAre(Done(7, kBound)));
  user().MustPost({Write(21, {users().piece(0, kWindowSize / 2)}, owned().remote(kWindowSize / 2), (*second)->rkey())});
  EXPECT_THAT(user().AwaitSends(2), ElementsAre(Done(20, kWritten), Done(21, kWritten)));
  EXPECT_TRUE(Same(owned().bytes(0, kWindowSize / 2), users().bytes(0, kWindowSize / 2)));
  EXPECT_TRUE(Same(owned().bytes(kWindowSize / 2, kWindowSize / 2), users().bytes(0, kWindowSize / 2)));
}

TEST_P(WindowsTest, NothingIsWrittenAfterAnInvalidateCompleted) {
  ExpectNothingIsWrittenAfter([&] {
    owner().MustPost({LocalInvalidate(5, window().rkey())});
    // The connection may have ended in between: the peer's write met a closed window.
    const Completions done = owner().AwaitSends(1);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].id, 5u);
  });
}

TEST_P(WindowsTest, NothingIsWrittenAfterAWindowWasDropped) {
  ExpectNothingIsWrittenAfter([&] { DropWindow(); });
}

TEST_P(WindowsTest, NothingIsWrittenAfterTheRegionBelowAWindowWasDropped) {
  ExpectNothingIsWrittenAfter([&] { owned().Deregister(); });
}

TEST_P(WindowsTest, AWindowOfARegionThatIsGoneOpensNothing) {
  MustBind(0, kWindowSize, kRemoteWrite);
  owned().Deregister();
  ExpectDenied(Fault::kRemoteKey, Write(0, {users().piece(0, 10)}, owned().remote(), window().rkey()));
}

TEST_P(WindowsTest, AWindowOutlivesItsOtherHandles) {
  MustBind(0, kWindowSize, kRemoteWrite);
  auto kept = TakeWindow();
  owner().connection.reset();
  owner().queue_pair.reset();
  owned().Deregister();
  kept.reset();
}

TEST_P(WindowsTest, WhatIsNoWindowCannotBeInvalidated) {
  owner().MustPost({LocalInvalidate(6, owned().rkey())});
  ExpectWindowFault(6);
}

TEST_P(WindowsTest, AWindowOfAnotherDomainIsNotBound) {
  auto domain = owner().device.CreateProtectionDomain();
  ASSERT_TRUE(domain.ok()) << domain.status();
  auto foreign = (*domain)->CreateMemoryWindow();
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  owner().MustPost({Bind(6, **foreign, owned(), 0, 100, kRemoteWrite)});
  ExpectWindowFault(6);
}

TEST_P(WindowsTest, AWindowOfNothingIsNotBound) {
  owner().MustPost({Bind(6, window(), owned(), 0, 0, kRemoteWrite)});
  ExpectWindowFault(6);
}

TEST_P(WindowsTest, AWindowIsBoundInsideItsRegionOnly) {
  owner().MustPost({Bind(1, window(), owned(), 1, kWindowSize, kRemoteWrite)});
  ExpectWindowFault(1);
}

TEST_P(WindowsTest, ARegionWithoutTheRightTakesNoWindow) {
  Memory closed(*owner().domain, 100, 3, kEverything);
  owner().MustPost({Bind(1, window(), closed, 0, 100, kRemoteWrite)});
  ExpectWindowFault(1);
}

TEST_P(WindowsTest, ARegionThatMayNotBeWrittenTakesNoWindowForWriting) {
  Memory fixed(*owner().domain, 100, 3, kWindowBind);
  owner().MustPost({Bind(1, window(), fixed, 0, 100, kRemoteWrite)});
  ExpectWindowFault(1);
}

}  // namespace
}  // namespace tokamak::verbs::conformance
