// One completion queue for all connections: who gets what, what is never passed on, and that it has
// room.
#include "lib/transport/channels/shared_completions.h"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/check.h"
#include "sim/time/sim_loop.h"

namespace tokamak::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Calls that the fake device got, and its answers.
struct Asked {
  int queues = 0;
  int resizes = 0;
  int polls = 0;
  absl::Status resized;
};

class FakeQueue final : public verbs::CompletionQueue {
 public:
  FakeQueue(uint32_t depth, std::function<void()> event, Asked& asked)
      : on_event(std::move(event)), depth_(depth), asked_(asked) {}

  size_t Poll(absl::Span<verbs::Completion> completions) override {
    ++asked_.polls;
    size_t count = 0;
    for (; count < completions.size() && !waiting.empty(); ++count) {
      completions[count] = waiting.front();
      waiting.pop_front();
    }
    return count;
  }
  void RequestNotify(bool) override { armed = true; }
  uint32_t depth() const override { return depth_; }
  absl::Status Resize(uint32_t depth) override {
    ++asked_.resizes;
    if (!asked_.resized.ok()) return asked_.resized;
    depth_ = depth;
    armed = false;
    return absl::OkStatus();
  }

  // Request `id` of queue pair `number` is done.
  void Complete(uint32_t number, uint64_t id) {
    verbs::Completion completion;
    completion.queue_pair_number = number;
    completion.id = id;
    waiting.push_back(completion);
  }

  const std::function<void()> on_event;
  std::deque<verbs::Completion> waiting;
  bool armed = false;

 private:
  uint32_t depth_;
  Asked& asked_;
};

class FakeDevice final : public verbs::Device {
 public:
  FakeDevice(uint32_t max_completions, absl::Status resized) {
    limits_.max_completions = max_completions;
    asked.resized = std::move(resized);
  }
  const std::string& name() const override { return name_; }
  const verbs::Limits& limits() const override { return limits_; }
  bool is_rdma() const override { return false; }
  const verbs::Address& address() const override { return address_; }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateProtectionDomain() override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<verbs::CompletionQueue>> CreateCompletionQueue(
      base::EventLoop&, uint32_t depth, std::function<void()> on_event) override {
    ++asked.queues;
    auto made = std::make_unique<FakeQueue>(depth, std::move(on_event), asked);
    queue = made.get();
    return made;
  }
  verbs::ConnectionManager& connection_manager() override { CHECK(false) << "not asked for"; }
  std::unique_ptr<verbs::DeviceWatch> Watch(base::EventLoop&, verbs::DeviceEventHandler) override { return nullptr; }

  Asked asked;
  FakeQueue* queue = nullptr;  // the latest

 private:
  const std::string name_ = "fake0";
  verbs::Limits limits_;
  const verbs::Address address_;
};

class FakeQueuePair final : public verbs::QueuePair {
 public:
  explicit FakeQueuePair(uint32_t number) : number_(number) {}
  uint32_t number() const override {
    EXPECT_TRUE(is_made) << "whoever asks waits for the device";
    return number_;
  }
  bool made() const override { return is_made; }
  verbs::QueuePairState state() const override { return verbs::QueuePairState::kInit; }
  verbs::PostResult PostSend(absl::Span<const verbs::SendRequest>) override { return {}; }
  verbs::PostResult PostReceive(absl::Span<const verbs::ReceiveRequest>) override { return {}; }
  absl::Status Modify(verbs::QueuePairState, const verbs::QueuePairAttributes&) override { return absl::OkStatus(); }

  bool is_made = true;

 private:
  const uint32_t number_;
};

// A connection of one queue pair.
class FakeUser final : public SharedCompletions::User {
 public:
  void OnCompletion(const verbs::Completion& completion, CopyBudget& budget) override {
    ids.push_back(completion.id);
    budget.left -= copies;
    if (on_completion) on_completion();
  }
  void OnTurn(CopyBudget&) override { ++turns; }

  void Join(SharedCompletions& shared, uint32_t number, uint32_t entries = 10, uint32_t more = 0) {
    auto reserved = shared.Reserve(entries, more);
    ASSERT_TRUE(reserved.ok()) << reserved.status();
    share = *std::move(reserved);
    share->Bind(FakeQueuePair(number), *this);
  }

  std::unique_ptr<SharedCompletions::Share> share;
  std::vector<uint64_t> ids;
  int turns = 0;
  size_t copies = 0;
  std::function<void()> on_completion;
};

constexpr size_t kLargestCopy = 16384;

class SharedCompletionsTest : public ::testing::Test {
 protected:
  void Open(uint32_t max_completions = 1 << 20, absl::Status resized = absl::OkStatus()) {
    shared_.reset();
    device_ = std::make_unique<FakeDevice>(max_completions, std::move(resized));
    auto shared = SharedCompletions::Create(*device_, loop_, kLargestCopy);
    ASSERT_TRUE(shared.ok()) << shared.status();
    shared_ = *std::move(shared);
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  std::unique_ptr<FakeDevice> device_;
  std::unique_ptr<SharedCompletions> shared_;
  FakeUser a_, b_;
};

TEST_F(SharedCompletionsTest, EachConnectionGetsItsCompletionsAndOneTurnForABatch) {
  Open();
  a_.Join(*shared_, 7);
  b_.Join(*shared_, 8);
  for (uint64_t id : {1, 2, 3}) device_->queue->Complete(id == 2 ? 8 : 7, id);
  device_->queue->on_event();
  EXPECT_THAT(a_.ids, ElementsAre(1, 3));
  EXPECT_THAT(b_.ids, ElementsAre(2));
  EXPECT_EQ(a_.turns, 1);
  EXPECT_EQ(b_.turns, 1);
  EXPECT_TRUE(device_->queue->armed);
  a_.share.reset(), b_.share.reset();
}

TEST_F(SharedCompletionsTest, PresentCompletionsArePassedOnThoughOthersKeepComing) {
  Open();
  a_.Join(*shared_, 7);
  b_.Join(*shared_, 8);
  for (uint64_t id = 1; id <= 800; ++id) device_->queue->Complete(id == 700 ? 8 : 7, id);
  a_.on_completion = [this] { device_->queue->Complete(7, 0); };  // for ever
  const uint64_t ahead = shared_->ahead();
  EXPECT_EQ(ahead, SharedCompletions::kFirstDepth);
  while (shared_->passed() < ahead) ASSERT_TRUE(shared_->Drain());
  EXPECT_THAT(b_.ids, ElementsAre(700));
  EXPECT_LE(shared_->passed(), ahead + SharedCompletions::kCompletionsPerTask);
  a_.share.reset(), b_.share.reset();
}

TEST_F(SharedCompletionsTest, AQueuePairThatIsMadeLaterIsKnownByItsNewNumber) {
  Open();
  FakeQueuePair later(7), never(0), forgotten(9);
  later.is_made = never.is_made = forgotten.is_made = false;
  FakeUser c;
  const auto join = [this](FakeUser& user, const FakeQueuePair& queue_pair) {
    user.share = *shared_->Reserve(10);
    user.share->Bind(queue_pair, user);
  };
  join(a_, later);
  join(b_, never);
  join(c, forgotten);
  c.share.reset();
  later.is_made = never.is_made = true;  // that it could not be made, and has no number
  for (uint64_t id : {1, 2}) device_->queue->Complete(7, id);
  device_->queue->on_event();
  EXPECT_THAT(a_.ids, ElementsAre(1, 2));
  EXPECT_THAT(b_.ids, IsEmpty());
  a_.share.reset(), b_.share.reset();
  a_.Join(*shared_, 7);  // the number is free again
  a_.share.reset();
}

TEST_F(SharedCompletionsTest, ACompletionOfAQueuePairThatWentIsNotPassedOn) {
  Open();
  a_.Join(*shared_, 7);
  b_.Join(*shared_, 8);
  a_.on_completion = [this] { b_.share.reset(); };  // as a rail drops out
  for (uint64_t id : {1, 2, 3}) device_->queue->Complete(id == 1 ? 7 : 8, id);
  device_->queue->on_event();
  EXPECT_THAT(a_.ids, ElementsAre(1));
  EXPECT_THAT(b_.ids, IsEmpty());
  EXPECT_EQ(b_.turns, 0);
  a_.share.reset();
}

TEST_F(SharedCompletionsTest, AQueuePairWithAReusedNumberGetsNoCompletionOfTheEarlierOne) {
  Open();
  FakeUser next;
  a_.Join(*shared_, 7);
  a_.on_completion = [&] {
    a_.share.reset();
    next.Join(*shared_, 7);
  };
  for (uint64_t id : {1, 2, 3}) device_->queue->Complete(7, id);
  device_->queue->on_event();
  EXPECT_THAT(next.ids, IsEmpty());
  device_->queue->Complete(7, 4);
  device_->queue->on_event();
  EXPECT_THAT(next.ids, ElementsAre(4));
  EXPECT_THAT(a_.ids, ElementsAre(1));
  next.share.reset();
}

TEST_F(SharedCompletionsTest, ATaskHandlesABoundedNumberAndGoesOnByItself) {
  Open();
  a_.Join(*shared_, 7);
  for (uint64_t id = 0; id < SharedCompletions::kCompletionsPerTask + 1; ++id) device_->queue->Complete(7, id);
  EXPECT_TRUE(shared_->Drain());
  EXPECT_EQ(a_.ids.size(), SharedCompletions::kCompletionsPerTask);
  scheduler_.Run();
  EXPECT_EQ(a_.ids.size(), SharedCompletions::kCompletionsPerTask + 1);
  a_.share.reset();
}

TEST_F(SharedCompletionsTest, ATaskCopiesABoundedNumberOfBytesForAllConnectionsTogether) {
  Open();
  a_.Join(*shared_, 7);
  b_.Join(*shared_, 8);
  a_.copies = b_.copies = kLargestCopy;
  const size_t most = base::kMaxCopyPerTask / kLargestCopy;
  for (uint64_t id = 0; id < 2 * most; ++id) device_->queue->Complete(7 + id % 2, id);
  EXPECT_TRUE(shared_->Drain());
  EXPECT_EQ(a_.ids.size() + b_.ids.size(), most);
  scheduler_.Run();
  EXPECT_EQ(a_.ids.size() + b_.ids.size(), 2 * most);
  a_.share.reset(), b_.share.reset();
}

// As many as 1,000 peers have.
constexpr uint32_t kShares = 4000;
constexpr uint32_t kEntries = 64;

TEST_F(SharedCompletionsTest, OneQueueGrowsWithItsConnectionsAndAPollStaysOne) {
  Open();
  std::vector<std::unique_ptr<SharedCompletions::Share>> shares;
  while (shares.size() < kShares) {
    shares.push_back(*shared_->Reserve(kEntries));
    ASSERT_GE(shared_->depth(), shared_->reserved());
  }
  EXPECT_EQ(device_->asked.queues, 1);
  EXPECT_LE(device_->asked.resizes, 12);  // doubling
  EXPECT_TRUE(device_->queue->armed);
  scheduler_.Run();  // what came while it was resized is looked for
  device_->asked.polls = 0;
  device_->queue->on_event();
  EXPECT_EQ(device_->asked.polls, 1);
  shares.clear();
  EXPECT_EQ(shared_->reserved(), 0u);
}

class FixedQueuesTest : public SharedCompletionsTest, public ::testing::WithParamInterface<absl::StatusCode> {};

TEST_P(FixedQueuesTest, WhereTheDeviceCannotResizeTheQueuesDouble) {
  Open(1 << 20, absl::Status(GetParam(), "as the device says it"));
  std::vector<std::unique_ptr<SharedCompletions::Share>> shares;
  while (shares.size() < kShares) {
    shares.push_back(*shared_->Reserve(kEntries / 2, kEntries / 2));
    ASSERT_TRUE(shares.back()->Grow(kEntries / 2));  // which it has already
    ASSERT_GE(shared_->depth(), shared_->reserved());
  }
  EXPECT_EQ(shared_->reserved(), kShares * kEntries);
  EXPECT_LE(shared_->queues(), 10u);
}

// Drivers differ in how they say so.
INSTANTIATE_TEST_SUITE_P(Refusals, FixedQueuesTest,
                         ::testing::Values(absl::StatusCode::kUnimplemented, absl::StatusCode::kInvalidArgument,
                                           absl::StatusCode::kResourceExhausted));

TEST_F(SharedCompletionsTest, AShareGrowsAndGivesBack) {
  Open(SharedCompletions::kFirstDepth);
  a_.Join(*shared_, 7, 1000, 1000);
  EXPECT_TRUE(a_.share->Grow(24));
  EXPECT_FALSE(a_.share->Grow(1));
  a_.share->Shrink(24);
  b_.Join(*shared_, 8, 24);
  EXPECT_FALSE(a_.share->Grow(1));
  a_.share.reset(), b_.share.reset();
  EXPECT_EQ(shared_->reserved(), 0u);
}

TEST_F(SharedCompletionsTest, AQueueThatDoesNotGrowIsNotTriedAgainAtOnce) {
  Open();
  a_.Join(*shared_, 7, SharedCompletions::kFirstDepth, 1000);
  device_->asked.resized = absl::ResourceExhaustedError("no memory");
  EXPECT_FALSE(a_.share->Grow(1));
  const int asked = device_->asked.resizes;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(a_.share->Grow(1));
  EXPECT_EQ(device_->asked.resizes, asked);
  device_->asked.resized = absl::OkStatus();
  EXPECT_FALSE(a_.share->Grow(1));
  scheduler_.RunFor(SharedCompletions::kResizeRest);
  EXPECT_TRUE(a_.share->Grow(1));
  a_.share.reset();
}

TEST_F(SharedCompletionsTest, AFullDeviceRefusesAndNamesTheRemedy) {
  for (const absl::Status& resized : {absl::OkStatus(), absl::UnimplementedError("no such call")}) {
    Open(2048, resized);
    std::vector<std::unique_ptr<SharedCompletions::Share>> shares;
    absl::Status refusal;
    while (refusal.ok()) {
      auto share = shared_->Reserve(100);
      refusal = share.status();
      if (share.ok()) shares.push_back(*std::move(share));
    }
    EXPECT_TRUE(absl::IsResourceExhausted(refusal)) << refusal;
    EXPECT_THAT(std::string(refusal.message()), HasSubstr("use more engines"));
    EXPECT_GE(shares.size(), 20u);
    shares.pop_back();
    EXPECT_TRUE(shared_->Reserve(100).ok());
  }
}

}  // namespace
}  // namespace tokamak::transport
