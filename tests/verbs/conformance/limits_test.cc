// Limits are facts: what a device has can be used up to the limit, what it lacks is refused and
// never imitated.
#include <algorithm>

#include "absl/status/status.h"
#include "tests/verbs/conformance/fixture.h"

namespace tokamak::verbs::conformance {
namespace {

class LimitsTest : public ConformanceTest {
 protected:
  // Returns the status of CreateQueuePair for valid options after `change`.
  absl::Status TryQueuePair(const std::function<void(QueuePairOptions&)>& change) {
    End end(backend(), 0);
    QueuePairOptions options;
    options.send_queue = end.sends.get();
    options.receive_queue = end.receives.get();
    change(options);
    return end.domain->CreateQueuePair(options).status();
  }
  // Without the capability, `work` is refused as a whole.
  void ExpectUnimplemented(const Work& work) {
    auto pair = Connect();
    const PostResult result = pair->active.Post({work});
    EXPECT_TRUE(absl::IsUnimplemented(result.status)) << result.status;
    EXPECT_EQ(result.accepted, 0u);
    EXPECT_EQ(pair->active.state(), QueuePairState::kReadyToSend);
  }
};
TOKAMAK_CONFORMANCE(LimitsTest);

TEST_P(LimitsTest, TheLimitsAreUsable) {
  for (size_t i = 0; i < backend().device_count(); ++i) {
    const Limits& facts = backend().device(i).limits();
    EXPECT_GE(facts.max_sges, 1u);
    EXPECT_GE(facts.max_read_sges, 1u);
    EXPECT_GE(facts.max_send_requests, 64u);
    EXPECT_GE(facts.max_receive_requests, 64u);
    EXPECT_GE(facts.max_completions, 256u);
    EXPECT_GE(facts.max_queue_pairs, 2u);
    EXPECT_GE(facts.max_reads, 1u);
    EXPECT_GE(facts.max_message, 1u << 22);  // Soft-RoCE has 2^23, others 2^30 and more
    EXPECT_GE(facts.max_private_data, 52u);
    EXPECT_GE(facts.active_mtu, kMinMtu);
    EXPECT_LE(facts.active_mtu, kMaxMtu);
  }
}

TEST_P(LimitsTest, ADeviceHasANameAndAnAddress) {
  EXPECT_FALSE(backend().device(0).name().empty());
  EXPECT_EQ(backend().device(0).address().port, 0);
  EXPECT_NE(backend().device(0).address().ip, Address().ip);
}

TEST_P(LimitsTest, AQueuePairAtTheLimitsIsMade) {
  const Limits& facts = limits();
  const absl::Status status = TryQueuePair([&](QueuePairOptions& options) {
    options.max_send_requests = std::min(facts.max_send_requests, 4096u);
    options.max_receive_requests = std::min(facts.max_receive_requests, 4096u);
    options.max_inline = facts.max_inline;
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(LimitsTest, AQueuePairAboveALimitIsRefused) {
  const Limits& facts = limits();
  EXPECT_FALSE(TryQueuePair([&](QueuePairOptions& o) { o.max_send_requests = facts.max_send_requests + 1; }).ok());
  EXPECT_FALSE(
      TryQueuePair([&](QueuePairOptions& o) { o.max_receive_requests = facts.max_receive_requests + 1; }).ok());
  EXPECT_FALSE(TryQueuePair([&](QueuePairOptions& o) { o.max_sges = facts.max_sges + 1; }).ok());
  EXPECT_FALSE(TryQueuePair([&](QueuePairOptions& o) { o.max_inline = facts.max_inline + 1; }).ok());
}

TEST_P(LimitsTest, ACompletionQueueAboveTheLimitIsRefused) {
  auto queue = backend().device(0).CreateCompletionQueue(backend().loop(0), limits().max_completions + 1, [] {});
  EXPECT_FALSE(queue.ok());
}

TEST_P(LimitsTest, MoreReadsAtOnceThanTheDeviceHasAreRefused) {
  if (limits().max_reads >= UINT8_MAX) GTEST_SKIP() << "skipped: nothing is above Limits::max_reads";
  End end(backend(), 0);
  ConnectOptions options = ConnectDefaults();
  options.reliability.reads_outstanding = static_cast<uint8_t>(limits().max_reads + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(end.Connect(backend().device(1).address(), options)));
}

// One test for all, since it has something to look at only where something is lacking.
TEST_P(LimitsTest, WhatADeviceLacksItRefuses) {
  End end(backend(), 0);
  Memory result(*end.domain, 8, 1);
  if (!limits().atomics) {
    ExpectUnimplemented(FetchAdd(1, result.whole(), 0, 0, 1));
    ExpectUnimplemented(CompareSwap(1, result.whole(), 0, 0, 1, 2));
  }
  if (!limits().immediate) {
    ExpectUnimplemented(SendWithImm(1, {}, 5));
    ExpectUnimplemented(WriteWithImm(1, {}, 0, 0, 5));
  }
  if (!limits().memory_windows) {
    EXPECT_TRUE(absl::IsUnimplemented(end.domain->CreateMemoryWindow().status()));
    for (Opcode opcode : {Opcode::kBindWindow, Opcode::kLocalInvalidate, Opcode::kSendWithInvalidate}) {
      Work work = Send(1, {});
      work.request.opcode = opcode;
      ExpectUnimplemented(work);
    }
  }
  if (!limits().shared_receive) {
    EXPECT_TRUE(absl::IsUnimplemented(end.domain->CreateSharedReceiveQueue(16, 1).status()));
  }
  if (!limits().manual_modify) {
    EXPECT_TRUE(absl::IsUnimplemented(end.queue_pair->Modify(QueuePairState::kReset)));
    EXPECT_EQ(end.state(), QueuePairState::kInit);
  }
}

TEST_P(LimitsTest, ManyQueuePairsLiveAtOnce) {
  const size_t count = std::min(limits().max_queue_pairs, 200u);
  End home(backend(), 0);
  EndOptions options;
  options.max_send_requests = options.max_receive_requests = 1;
  std::vector<std::unique_ptr<End>> ends;
  for (size_t i = 0; i + 1 < count; ++i) ends.push_back(std::make_unique<End>(backend(), 0, options, &home));
  std::vector<uint32_t> numbers;
  for (const auto& end : ends) ASSERT_NE(end->queue_pair, nullptr);
  for (const auto& end : ends) numbers.push_back(end->queue_pair->number());
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
}

TEST_P(LimitsTest, AQueueTakesAsManyAsItWasMadeForAndNoMore) {
  EndOptions options;
  options.max_receive_requests = std::min(limits().max_receive_requests, 4096u);
  End end(backend(), 0, options);
  for (uint32_t i = 0; i < options.max_receive_requests; ++i) end.MustPostReceives({{i, {}}});
  EXPECT_TRUE(absl::IsResourceExhausted(end.PostReceives({{0, {}}}).status));
}

}  // namespace
}  // namespace tokamak::verbs::conformance
