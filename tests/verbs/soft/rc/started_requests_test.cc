// Send requests start in turn, wait at fences, and complete in order.
#include "lib/verbs/soft/rc/started_requests.h"

#include "gmock/gmock.h"
#include "tests/verbs/soft/one_core.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StartedRequestsTest : public OneCore {
 protected:
  StartedRequestsTest() { requests_.Start(kFirst); }

  // Returns how many started.
  int StartAll() {
    int started = 0;
    while (requests_.StartNext()) ++started;
    return started;
  }
  // An invalidate of a window that does not exist.
  SendSlot& PostRefused(uint64_t id) { return Post(Opcode::kLocalInvalidate, id, 0, 0); }

  // A bind of a window to the memory of the test.
  void PostBind(uint64_t id) {
    const WindowId window = nic_state_.keys.AddWindow(kDomain);
    const uint32_t region =
        nic_state_.keys.Add(kDomain, RegionMemory(absl::MakeSpan(memory_)), kLocalWrite | kWindowBind);
    WindowBinding& bind = Post(Opcode::kBindWindow, id, 0, 0).bind;
    bind.window = {nic_state_.keys.NextKey(window.key), window.life};
    bind.region_key = region;
    bind.address = reinterpret_cast<uint64_t>(memory_.data());
    bind.length = 100;
    bind.access = kRemoteRead;
  }

  StartedRequests requests_{nic_state_, core_};
};

TEST_F(StartedRequestsTest, EachGetsAsManySequencesAsItOrItsAnswerHasPackets) {
  Post(Opcode::kSend, 1, 0, 0);
  Post(Opcode::kWrite, 2, 0, kMtu + 1);
  Post(Opcode::kRead, 3, 0, 3 * kMtu);
  EXPECT_EQ(StartAll(), 3);
  EXPECT_EQ(requests_.at(0).first, kFirst);
  EXPECT_EQ(requests_.at(0).end, kFirst + 1);
  EXPECT_EQ(requests_.at(1).end, kFirst + 3);
  EXPECT_EQ(requests_.at(2).first, kFirst + 3);
  EXPECT_EQ(requests_.at(2).end, kFirst + 6);
  EXPECT_EQ(requests_.unanswered(), 1u);
}

TEST_F(StartedRequestsTest, AFenceWaitsForReadsButNotForWrites) {
  Post(Opcode::kRead, 1, 0, 8);
  Post(Opcode::kWrite, 2, 0, 8);
  Post(Opcode::kSend, 3, 0, 8).fence = true;
  EXPECT_EQ(StartAll(), 2);
  requests_.CompleteOldest();
  EXPECT_EQ(StartAll(), 1) << "the WRITE is outstanding";
}

TEST_F(StartedRequestsTest, TheFenceOfAnInvalidateWaitsForAll) {
  Post(Opcode::kWrite, 1, 0, 8);
  PostRefused(2).fence = true;
  EXPECT_EQ(StartAll(), 1);
  requests_.CompleteOldest();
  EXPECT_EQ(StartAll(), 1);
}

TEST_F(StartedRequestsTest, ABindIsCarriedOutAtOnceButCompletesInItsTurn) {
  Post(Opcode::kWrite, 1, 0, 8);
  PostBind(2);
  Post(Opcode::kWrite, 3, 0, 8);
  EXPECT_EQ(StartAll(), 3);
  const SendSlot& bind = requests_.at(1);
  EXPECT_FALSE(bind.refused);
  EXPECT_EQ(bind.first, bind.end);
  EXPECT_TRUE(nic_state_.keys.IsWindowOf(core_.asker(), bind.bind.window.key));
  requests_.CompleteLocal();
  EXPECT_THAT(PollIds(), IsEmpty());
  requests_.CompleteOldest();
  EXPECT_THAT(PollIds(), ElementsAre(1, 2));
  EXPECT_EQ(requests_.oldest(), 2u);
}

TEST_F(StartedRequestsTest, ARefusedOneStaysTheOldest) {
  Post(Opcode::kWrite, 1, 0, 8);
  PostRefused(2);
  EXPECT_EQ(StartAll(), 2);
  requests_.CompleteOldest();
  EXPECT_THAT(PollIds(), ElementsAre(1));
  EXPECT_EQ(requests_.oldest(), 1u);
  EXPECT_TRUE(requests_.at(1).refused);
}

TEST_F(StartedRequestsTest, OnlySignaledOnesSpeakOfSuccess) {
  Post(Opcode::kWrite, 1, 0, 8).signaled = false;
  Post(Opcode::kWrite, 2, 0, 8);
  StartAll();
  requests_.CompleteOldest();
  requests_.CompleteOldest();
  EXPECT_THAT(PollIds(), ElementsAre(2));
}

TEST_F(StartedRequestsTest, AFlushEndsAllPostedInOrderTheOldestWithTheReason) {
  Post(Opcode::kWrite, 1, 0, 8);
  Post(Opcode::kWrite, 2, 0, 8).signaled = false;
  EXPECT_EQ(StartAll(), 2);
  Post(Opcode::kRead, 3, 0, 8);  // not started
  requests_.Flush(CompletionStatus::kRemoteAccess, 0x62, kFirst + 2);
  const auto completions = Poll();
  ASSERT_EQ(completions.size(), 3u);
  EXPECT_EQ(completions[0].status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(completions[0].provider_code, 0x62u);
  EXPECT_EQ(completions[1].id, 2u);
  EXPECT_EQ(completions[1].status, CompletionStatus::kFlushed);
  EXPECT_EQ(completions[2].id, 3u);
  EXPECT_EQ(requests_.oldest(), requests_.posted());
  EXPECT_EQ(requests_.started(), requests_.posted());
}

TEST_F(StartedRequestsTest, AfterForgettingTheNextStartsWhereItIsTold) {
  Post(Opcode::kRead, 1, 0, 8);
  StartAll();
  requests_.Forget(kFirst + 10);
  EXPECT_THAT(PollIds(), IsEmpty());
  Post(Opcode::kSend, 2, 0, 8).fence = true;
  EXPECT_EQ(StartAll(), 1) << "the READ is forgotten";
  EXPECT_EQ(requests_.at(requests_.oldest()).first, kFirst + 10);
}

}  // namespace
}  // namespace tokamak::verbs::soft
