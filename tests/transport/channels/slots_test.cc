// Receives are given to the device in batches.
#include "lib/transport/channels/slots.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "lib/transport/messages/request_id.h"

namespace tokamak::transport::testing {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kSlotSize = 64;

// Takes `room` receives, and remembers them and how they came.
class TakingQueuePair final : public verbs::QueuePair {
 public:
  uint32_t number() const override { return 1; }
  verbs::QueuePairState state() const override { return verbs::QueuePairState::kReadyToSend; }
  verbs::PostResult PostSend(absl::Span<const verbs::SendRequest>) override { return {}; }
  verbs::PostResult PostReceive(absl::Span<const verbs::ReceiveRequest> requests) override {
    const size_t taken = std::min(room - entries.size(), requests.size());
    batches.push_back(taken);
    for (const verbs::ReceiveRequest& request : requests.first(taken)) {
      const RequestId id = RequestId::Unpack(request.id);
      EXPECT_TRUE(id.receive);
      EXPECT_EQ(id.queue, 3);
      EXPECT_EQ(request.sges.size(), 1u);
      EXPECT_EQ(request.sges[0].length, kSlotSize);
      entries.push_back(id.entry);
    }
    if (taken == requests.size()) return {taken, absl::OkStatus()};
    return {taken, absl::ResourceExhaustedError("full")};
  }
  absl::Status Modify(verbs::QueuePairState, const verbs::QueuePairAttributes&) override { return absl::OkStatus(); }

  size_t room = SIZE_MAX;
  std::vector<size_t> batches;
  std::vector<uint32_t> entries;
};

class PostReceivesTest : public ::testing::Test {
 protected:
  PostReceivesTest() : entries_(40) { std::iota(entries_.begin(), entries_.end(), 0); }

  verbs::PostResult Post(absl::Span<const uint32_t> entries) {
    return PostReceives(queue_pair_, entries, 3, [this](uint32_t entry) {
      return verbs::Sge{memory_.data() + entry * kSlotSize, kSlotSize, 7};
    });
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(40 * kSlotSize);
  std::vector<uint32_t> entries_;
  TakingQueuePair queue_pair_;
};

TEST_F(PostReceivesTest, ManyReceivesTakeFewCalls) {
  const verbs::PostResult result = Post(entries_);
  EXPECT_TRUE(result.ok()) << result.status;
  EXPECT_EQ(result.accepted, 40u);
  EXPECT_EQ(queue_pair_.entries, entries_);
  EXPECT_THAT(queue_pair_.batches, ElementsAre(kPostBatch, kPostBatch, 40 - 2 * kPostBatch));
}

TEST_F(PostReceivesTest, ReceivesTakenBeforeARefusalAreReported) {
  queue_pair_.room = kPostBatch + 3;
  const verbs::PostResult result = Post(entries_);
  EXPECT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;
  EXPECT_EQ(result.accepted, kPostBatch + 3);
  EXPECT_EQ(queue_pair_.batches.size(), 2u) << "and it is asked no more";
}

TEST_F(PostReceivesTest, NoReceivesTakeNoCall) {
  EXPECT_TRUE(Post({}).ok());
  EXPECT_TRUE(queue_pair_.batches.empty());
}

}  // namespace
}  // namespace tokamak::transport::testing
