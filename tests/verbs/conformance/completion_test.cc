// Completions: in the order posted, only where asked for, and a slot of a queue is free again when
// one is polled.
#include <algorithm>

#include "absl/status/status.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

using testing::ElementsAre;

constexpr auto kSent = CompletionOpcode::kSend;
constexpr auto kWritten = CompletionOpcode::kWrite;

class CompletionTest : public ConformanceTest {};
TOKAMAK_CONFORMANCE(CompletionTest);

TEST_P(CompletionTest, CompletionsComeInTheOrderPostedWhateverTheOperation) {
  constexpr size_t kCount = 60, kSize = 4000;
  auto pair = Connect();
  Memory here(*pair->active.domain, kCount * kSize, 1), there(*pair->passive.domain, kCount * kSize, 2);
  std::vector<CompletionMatcher> expected;
  for (size_t i = 0; i < kCount; ++i) {
    const Sge piece = here.piece(i * kSize, i % 7 == 0 ? kSize : 10);
    const uint64_t remote = there.remote(i * kSize);
    switch (i % 3) {
      case 0:
        pair->passive.MustPostReceives({{i, {there.piece(i * kSize, kSize)}}});
        pair->active.MustPost({Send(i, {piece})});
        expected.push_back(Done(i, kSent));
        break;
      case 1:
        pair->active.MustPost({Read(i, {piece}, remote, there.rkey())});
        expected.push_back(Done(i, CompletionOpcode::kRead));
        break;
      default:
        pair->active.MustPost({Write(i, {piece}, remote, there.rkey())});
        expected.push_back(Done(i, kWritten));
    }
  }
  EXPECT_THAT(pair->active.AwaitSends(kCount), testing::ElementsAreArray(expected));
}

TEST_P(CompletionTest, AnUnsignaledSuccessRaisesNoCompletion) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 100, 1), to(*pair->passive.domain, 100, 2);
  pair->active.MustPost({Write(1, {from.piece(0, 50)}, to.remote(), to.rkey()).Unsignaled(),
                         Write(2, {from.piece(50, 50)}, to.remote(50), to.rkey()),
                         Read(3, {from.piece(0, 10)}, to.remote(0), to.rkey()).Unsignaled(), Write(4, {}, 0, 0)});
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(Done(2, kWritten), Done(4, kWritten)));
  LookOn();
  EXPECT_TRUE(PollNow(*pair->active.sends).empty());
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(CompletionTest, AnUnsignaledFailureRaisesACompletion) {
  TOKAMAK_NEEDS(acknowledgements);
  auto pair = Connect();
  Memory from(*pair->active.domain, 100, 1), to(*pair->passive.domain, 100, 2, kRemoteRead);
  pair->active.MustPost({Write(1, {from.whole()}, to.remote(), to.rkey()).Unsignaled()});
  ExpectFault(pair->active, Fault::kRemoteRight, 1);
}

TEST_P(CompletionTest, ReceivesCompleteThoughTheSendIsUnsignaled) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 10, 1), to(*pair->passive.domain, 10, 2);
  pair->passive.MustPostReceives({{1, {to.whole()}}});
  pair->active.MustPost({Send(1, {from.whole()}).Unsignaled()});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(1, 10)));
}

TEST_P(CompletionTest, PollGivesNoMoreThanAskedFor) {
  auto pair = Connect();
  pair->active.MustPost({Write(1, {}, 0, 0), Write(2, {}, 0, 0), Write(3, {}, 0, 0)});
  Completion one;
  EXPECT_EQ(pair->active.sends->Poll({}), 0u);
  EXPECT_TRUE(Drive([&] { return pair->active.sends->Poll(absl::MakeSpan(&one, 1)) == 1; }));
  EXPECT_THAT(one, Done(1, kWritten));
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(Done(2, kWritten), Done(3, kWritten)));
}

TEST_P(CompletionTest, AnEmptyBatchIsTaken) {
  auto pair = Connect();
  PostResult result = pair->active.Post({});
  EXPECT_TRUE(result.ok()) << result.status;
  EXPECT_EQ(result.accepted, 0u);
  result = pair->active.PostReceives({});
  EXPECT_TRUE(result.ok()) << result.status;
  EXPECT_EQ(result.accepted, 0u);
}

TEST_P(CompletionTest, ABatchStopsAtTheBadRequest) {
  PairOptions options;
  options.active.max_sges = 1;
  auto pair = Connect(options);
  Memory from(*pair->active.domain, 30, 1), to(*pair->passive.domain, 30, 2);
  const PostResult result =
      pair->active.Post({Write(1, {from.piece(0, 10)}, to.remote(0), to.rkey()),
                         Write(2, {from.piece(10, 5), from.piece(15, 5)}, to.remote(10), to.rkey()),
                         Write(3, {from.piece(20, 10)}, to.remote(20), to.rkey())});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  EXPECT_EQ(result.accepted, 1u);
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, kWritten)));
  LookOn();
  EXPECT_TRUE(PollNow(*pair->active.sends).empty());
  EXPECT_TRUE(Same(to.bytes(0, 10), from.bytes(0, 10)));
  EXPECT_TRUE(to.Untouched(10, 20));
  EXPECT_EQ(pair->active.state(), QueuePairState::kReadyToSend);
  ExpectWorks(pair->active, pair->passive);
}

TEST_P(CompletionTest, ABatchOfReceivesStopsAtTheBadRequest) {
  PairOptions options;
  options.passive.max_sges = 1;
  auto pair = Connect(options);
  Memory from(*pair->active.domain, 10, 1), to(*pair->passive.domain, 30, 2);
  const PostResult result = pair->passive.PostReceives(
      {{1, {to.piece(0, 10)}}, {2, {to.piece(10, 5), to.piece(15, 5)}}, {3, {to.piece(20, 10)}}});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  EXPECT_EQ(result.accepted, 1u);
  pair->passive.MustPostReceives({{4, {to.piece(10, 10)}}});
  pair->active.MustPost({Send(1, {from.whole()}), Send(2, {from.whole()})});
  EXPECT_THAT(pair->passive.AwaitReceives(2), ElementsAre(Received(1, 10), Received(4, 10)));
}

TEST_P(CompletionTest, ASendBeforeTheConnectionIsRefused) {
  End end(backend(), 0);
  Memory from(*end.domain, 10, 1);
  const PostResult result = end.Post({Send(1, {from.whole()})});
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status)) << result.status;
  EXPECT_EQ(result.accepted, 0u);
  LookOn();
  EXPECT_TRUE(PollNow(*end.sends).empty());
}

TEST_P(CompletionTest, AFullSendQueueRefusesUntilACompletionIsPolled) {
  constexpr uint32_t kDepth = 8;
  PairOptions options;
  options.active.max_send_requests = kDepth;
  auto pair = Connect(options);
  std::vector<Work> batch;
  for (uint64_t i = 0; i <= kDepth; ++i) batch.push_back(Write(i, {}, 0, 0));
  PostResult result = pair->active.Post(batch);
  EXPECT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;
  EXPECT_EQ(result.accepted, kDepth);

  // They complete, but a slot is free only when its completion has been polled.
  LookOn();
  result = pair->active.Post({Write(90, {}, 0, 0)});
  EXPECT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;

  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(0, kWritten)));
  result = pair->active.Post({Write(91, {}, 0, 0), Write(92, {}, 0, 0)});
  EXPECT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;
  EXPECT_EQ(result.accepted, 1u);
  EXPECT_EQ(pair->active.AwaitSends(kDepth).size(), kDepth);
}

TEST_P(CompletionTest, PollingACompletionFreesTheUnsignaledBeforeIt) {
  constexpr uint32_t kDepth = 8;
  PairOptions options;
  options.active.max_send_requests = kDepth;
  auto pair = Connect(options);
  for (uint64_t round = 0; round < 5; ++round) {
    std::vector<Work> batch;
    for (uint64_t i = 1; i < kDepth; ++i) batch.push_back(Write(i, {}, 0, 0).Unsignaled());
    batch.push_back(Write(round, {}, 0, 0));
    pair->active.MustPost(batch);
    EXPECT_TRUE(absl::IsResourceExhausted(pair->active.Post({Write(90, {}, 0, 0)}).status));
    EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(round, kWritten)));
  }
}

TEST_P(CompletionTest, AFullReceiveQueueRefusesUntilACompletionIsPolled) {
  constexpr uint32_t kDepth = 8;
  PairOptions options;
  options.passive.max_receive_requests = kDepth;
  auto pair = Connect(options);
  std::vector<Receive> batch;
  for (uint64_t i = 0; i <= kDepth; ++i) batch.push_back({i, {}});
  PostResult result = pair->passive.PostReceives(batch);
  EXPECT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;
  EXPECT_EQ(result.accepted, kDepth);
  pair->active.MustPost({Send(1, {})});
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(0, 0)));
  result = pair->passive.PostReceives({{91, {}}, {92, {}}});
  EXPECT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;
  EXPECT_EQ(result.accepted, 1u);
}

TEST_P(CompletionTest, AQueuePairMayRunManyTimesItsDepth) {
  constexpr uint64_t kDepth = 16, kTotal = 1000;
  PairOptions options;
  options.active.max_send_requests = options.passive.max_receive_requests = kDepth;
  auto pair = Connect(options);
  Memory from(*pair->active.domain, kTotal, 1), to(*pair->passive.domain, kTotal, 2);
  uint64_t posted = 0, sent = 0, receives = 0, received = 0;
  EXPECT_TRUE(Drive([&] {
    for (const Completion& completion : PollNow(*pair->active.sends)) EXPECT_THAT(completion, Done(sent++, kSent));
    for (const Completion& completion : PollNow(*pair->passive.receives)) {
      EXPECT_THAT(completion, Received(received++, 1));
    }
    for (; receives < kTotal && receives - received < kDepth; ++receives) {
      pair->passive.MustPostReceives({{receives, {to.piece(receives, 1)}}});
    }
    for (; posted < kTotal && posted - sent < kDepth && posted < receives; ++posted) {
      pair->active.MustPost({Send(posted, {from.piece(posted, 1)})});
    }
    return (sent == kTotal && received == kTotal) || HasFailure();
  })) << backend().Counters();
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(CompletionTest, InlineBytesAreTakenDuringTheCall) {
  TOKAMAK_NEEDS(max_inline);
  const uint32_t size = std::min(limits().max_inline, 64u);
  PairOptions options;
  options.active.max_inline = size;
  auto pair = Connect(options);
  Memory from(*pair->active.domain, size, 1), to(*pair->passive.domain, size, 2), sink(*pair->passive.domain, size, 3);
  pair->passive.MustPostReceives({{1, {sink.whole()}}});
  pair->active.MustPost({Write(1, {from.whole()}, to.remote(), to.rkey()).With(kInline)});
  from.Fill(9);
  pair->active.MustPost({Send(2, {from.whole()}).With(kInline)});
  from.Fill(10);
  EXPECT_THAT(pair->passive.AwaitReceives(1), ElementsAre(Received(1, size)));
  EXPECT_THAT(pair->active.AwaitSends(2), ElementsAre(Done(1, kWritten), Done(2, kSent)));
  EXPECT_TRUE(to.Holds(1));
  EXPECT_TRUE(sink.Holds(9));
}

TEST_P(CompletionTest, InlineNeedsNoRegisteredMemory) {
  TOKAMAK_NEEDS(max_inline);
  PairOptions options;
  options.active.max_inline = 8;
  auto pair = Connect(options);
  Memory to(*pair->passive.domain, 8, 2);
  std::vector<uint8_t> bytes = Pattern(1, 8);
  pair->active.MustPost({Write(1, {Sge{bytes.data(), 8, 0}}, to.remote(), to.rkey()).With(kInline)});
  std::fill(bytes.begin(), bytes.end(), 0);
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, kWritten)));
  EXPECT_TRUE(to.Holds(1));
}

TEST_P(CompletionTest, MoreInlineBytesThanAskedForAreRefused) {
  TOKAMAK_NEEDS(max_inline);
  PairOptions options;
  options.active.max_inline = std::min(limits().max_inline, 16u);
  auto pair = Connect(options);
  const uint32_t too_much = limits().max_inline + 1;
  Memory from(*pair->active.domain, too_much, 1), to(*pair->passive.domain, too_much, 2);
  const PostResult result = pair->active.Post({Write(1, {from.whole()}, to.remote(), to.rkey()).With(kInline)});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  EXPECT_EQ(result.accepted, 0u);
  EXPECT_EQ(pair->active.state(), QueuePairState::kReadyToSend);
}

TEST_P(CompletionTest, AMessageAboveTheDevicesLimitIsRefused) {
  if (limits().max_message >= UINT32_MAX) GTEST_SKIP() << "skipped: no request can be above Limits::max_message";
  auto pair = Connect();
  Memory from(*pair->active.domain, 10, 1);
  Sge huge = from.whole();
  huge.length = static_cast<uint32_t>(limits().max_message + 1);
  const PostResult result = pair->active.Post({Send(1, {huge})});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  EXPECT_EQ(pair->active.state(), QueuePairState::kReadyToSend);
}

TEST_P(CompletionTest, OfAMixTheSignaledCompleteInOrderAndNoOthers) {
  constexpr uint64_t kCount = 60;
  auto pair = Connect();
  Memory here(*pair->active.domain, kCount * 8, 1), there(*pair->passive.domain, kCount * 8, 2);
  std::vector<CompletionMatcher> expected;
  std::vector<Work> batch;
  for (uint64_t i = 0; i < kCount; ++i) {
    const Sge piece = here.piece(i * 8, 8);
    const CompletionOpcode opcode = i % 3 == 0 ? kSent : i % 3 == 1 ? kWritten : CompletionOpcode::kRead;
    Work work = i % 3 == 0   ? Send(i, {piece})
                : i % 3 == 1 ? Write(i, {piece}, there.remote(i * 8), there.rkey())
                             : Read(i, {piece}, there.remote(i * 8), there.rkey());
    if (i % 3 == 0) pair->passive.MustPostReceives({{i, {there.piece(i * 8, 8)}}});
    const bool signaled = i * i % 7 == 2 || i + 1 == kCount;  // neighbours of all kinds, and runs of several
    if (signaled) {
      expected.push_back(Done(i, opcode));
    } else {
      work.Unsignaled();
    }
    batch.push_back(work);
  }
  pair->active.MustPost(batch);
  EXPECT_THAT(pair->active.AwaitSends(expected.size()), testing::ElementsAreArray(expected));
  EXPECT_EQ(pair->passive.AwaitReceives(kCount / 3).size(), kCount / 3);
  LookOn();
  EXPECT_TRUE(PollNow(*pair->active.sends).empty());
}

TEST_P(CompletionTest, SendsAndReceivesMayCompleteIntoOneQueue) {
  constexpr uint64_t kCount = 20;
  PairOptions options;
  options.active.one_completion_queue = options.passive.one_completion_queue = true;
  auto pair = Connect(options);
  for (End* end : {&pair->active, &pair->passive}) {
    for (uint64_t i = 0; i < kCount; ++i) end->MustPostReceives({{100 + i, {}}});
  }
  for (uint64_t i = 0; i < kCount; ++i) {
    for (End* end : {&pair->active, &pair->passive}) end->MustPost({Send(i, {})});
  }
  for (End* end : {&pair->active, &pair->passive}) {
    uint64_t sent = 0, received = 0;
    for (const Completion& completion : end->AwaitSends(2 * kCount)) {
      if (completion.id < 100) {
        EXPECT_THAT(completion, Done(sent++, kSent));
      } else {
        EXPECT_THAT(completion, Received(100 + received++, 0));
      }
    }
    EXPECT_EQ(sent, kCount);
    EXPECT_EQ(received, kCount);
  }
}

TEST_P(CompletionTest, WhatFollowedTheBadRequestMayBePostedAgain) {
  auto pair = Connect();
  Memory from(*pair->active.domain, 20, 1), to(*pair->passive.domain, 20, 2);
  const Work bad = Write(9, {from.piece(0, 1), from.piece(1, 1)}, to.remote(), to.rkey());
  const PostResult result = pair->active.Post({bad, Write(1, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  EXPECT_EQ(result.accepted, 0u);
  pair->active.MustPost({Write(1, {from.whole()}, to.remote(), to.rkey())});
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, kWritten)));
  EXPECT_TRUE(to.Holds(1));
}

// A device that cannot resize says so, and its queue goes on as it was.
TEST_P(CompletionTest, AQueueThatIsResizedKeepsWhatWaitsAndGoesOn) {
  constexpr uint32_t kFirst = 12, kAll = 60;
  PairOptions options;
  options.active.send_completions = 16;
  auto pair = Connect(options);
  CompletionQueue& queue = *pair->active.sends;
  for (uint64_t i = 0; i < kFirst; ++i) pair->active.MustPost({Write(i, {}, 0, 0)});
  LookOn();
  const absl::Status resized = queue.Resize(256);
  uint64_t next = 0;
  if (resized.ok()) {
    EXPECT_GE(queue.depth(), 256u);
  } else {
    EXPECT_TRUE(absl::IsUnimplemented(resized)) << resized;
    for (; next < kFirst; ++next) EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(next, kWritten)));
  }
  const uint64_t last = resized.ok() ? kAll : kFirst + 4;  // as many as there is room for
  for (uint64_t i = kFirst; i < last; ++i) pair->active.MustPost({Write(i, {}, 0, 0)});
  for (; next < last; ++next) EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(next, kWritten)));

  pair->active.Arm(queue);
  const int events = pair->active.send_events;
  pair->active.MustPost({Write(last, {}, 0, 0)});
  EXPECT_TRUE(Drive([&] { return pair->active.send_events > events; }));
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(last, kWritten)));
  EXPECT_TRUE(absl::IsInvalidArgument(queue.Resize(limits().max_completions + 1)));
}

TEST_P(CompletionTest, InlineBytesAreGatheredFromPieces) {
  TOKAMAK_NEEDS(max_inline);
  if (limits().max_sges < 3) GTEST_SKIP() << "skipped: device lacks Limits::max_sges of 3";
  const uint32_t size = std::min(limits().max_inline, 33u);
  if (size < 3) GTEST_SKIP() << "skipped: device lacks Limits::max_inline of 3";
  PairOptions options;
  options.active.max_inline = size;
  options.active.max_sges = 3;
  auto pair = Connect(options);
  Memory from(*pair->active.domain, size, 1), to(*pair->passive.domain, size, 2);
  pair->active.MustPost(
      {Write(1, {from.piece(0, 1), from.piece(1, size - 2), from.piece(size - 1, 1)}, to.remote(), to.rkey())
           .With(kInline)});
  from.Fill(9);
  EXPECT_THAT(pair->active.AwaitSends(1), ElementsAre(Done(1, kWritten)));
  EXPECT_TRUE(to.Holds(1));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
