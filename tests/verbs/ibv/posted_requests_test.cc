// Each posted request comes back once: completed, or flushed by us. The completion queues of a
// queue pair are one, or two of one loop.
#include "lib/verbs/ibv/posted_requests.h"

#include <cerrno>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/ibv/device.h"
#include "tests/verbs/ibv/recording_verbs.h"

namespace tokamak::verbs::ibv {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PostedRequestsTest : public testing::Test, protected CompletionOwner {
 protected:
  static constexpr uint32_t kNumber = 42;

  PostedRequestsTest() {
    RecordingVerbs::Reset();
    DeviceOptions options;
    options.name.device = RecordingVerbs::kDevice;
    options.exchange = Exchange::kTcp;
    options.tcp_address = *Address::Parse("127.0.0.1");
    device_ = *OpenIbvDevice(options);
    queue_ = *device_->CreateCompletionQueue(loop_, 16, [] {});
    other_queue_ = *device_->CreateCompletionQueue(loop_, 16, [] {});
    posted_ = std::make_unique<PostedRequests>(PairOf(*queue_, *queue_), nullptr, 4, 4);
    posted_->Begin(kNumber);
    posted_->completions().Add(*this);
  }
  ~PostedRequestsTest() override {
    posted_->completions().Remove(*this);
    posted_->completions().Forget(*this, /*for_good=*/true);
  }

  static std::shared_ptr<CompletionCore> CoreOf(CompletionQueue& queue) {
    return dynamic_cast<IbvCompletionQueue&>(queue).core();
  }
  static CompletionPair PairOf(CompletionQueue& sends, CompletionQueue& receives) {
    return {CoreOf(sends), CoreOf(receives)};
  }

  // CompletionOwner.
  uint32_t completion_number() const override { return kNumber; }
  bool Arrived(const ibv_wc&) override { return false; }
  bool Finish(const ibv_wc& done, Completion* to) override { return posted_->Finish(done, to); }
  void Fail() override {}

  // Notes requests with these ids.
  static void Note(WorkRing& ring, const std::vector<uint64_t>& ids) {
    for (uint32_t i = 0; i < ids.size(); ++i) ring.Note(i, ids[i]);
  }
  absl::Status Take(const Posted& posted, bool receives, bool ended) {
    result_ = PostResult();
    return posted_->Take(posted, receives, ended, &result_);
  }
  // The provider completes the request at `position`.
  void Complete(uint64_t position, ibv_wc_status status = IBV_WC_SUCCESS, ibv_wc_opcode opcode = IBV_WC_SEND) {
    ibv_wc done{};
    done.wr_id = position;
    done.status = status;
    done.opcode = opcode;
    done.qp_num = kNumber;
    RecordingVerbs::Get().Complete(CoreOf(*queue_)->queue(), done);
  }
  std::vector<Completion> Poll() {
    std::vector<Completion> all(16);
    all.resize(queue_->Poll(absl::MakeSpan(all)));
    return all;
  }
  std::vector<uint64_t> PollIds() {
    std::vector<uint64_t> ids;
    for (const Completion& completion : Poll()) ids.push_back(completion.id);
    return ids;
  }

  os::EpollLoop loop_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CompletionQueue> queue_, other_queue_;
  std::unique_ptr<PostedRequests> posted_;
  PostResult result_;
};

TEST_F(PostedRequestsTest, ACompletionBringsTheIdAndFreesTheOnesBefore) {
  Note(posted_->sends(), {1, 2, 3});
  ASSERT_TRUE(Take({3, 3, 0}, false, false).ok());
  EXPECT_EQ(result_.accepted, 3u);
  Complete(1);
  EXPECT_THAT(PollIds(), ElementsAre(2));
  EXPECT_EQ(posted_->sends().room(), 3u);
}

TEST_F(PostedRequestsTest, WhatTheProviderRefusesIsRefusedWhileItLives) {
  Note(posted_->sends(), {1, 2, 3});
  EXPECT_FALSE(Take({3, 1, ENOMEM}, false, false).ok());
  EXPECT_EQ(result_.accepted, 1u);
  EXPECT_EQ(posted_->sends().posted(), 1u);
}

TEST_F(PostedRequestsTest, WhatTheProviderRefusesAfterTheEndComesBackFlushedBehindTheRest) {
  Note(posted_->receives(), {1, 2, 3});
  ASSERT_TRUE(Take({3, 1, ENOTCONN}, true, true).ok());
  EXPECT_EQ(result_.accepted, 3u);
  Complete(kReceiveMark | 0, IBV_WC_WR_FLUSH_ERR);
  const std::vector<Completion> completions = Poll();
  ASSERT_EQ(completions.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(completions[i].id, i + 1);
    EXPECT_EQ(completions[i].status, CompletionStatus::kFlushed);
  }
}

TEST_F(PostedRequestsTest, AFlushOfAllLeavesOutWhatWasPolledAndIsNotRepeatedByTheProvider) {
  Note(posted_->sends(), {1, 2, 3});
  ASSERT_TRUE(Take({3, 3, 0}, false, false).ok());
  Note(posted_->receives(), {4});
  ASSERT_TRUE(Take({1, 1, 0}, true, false).ok());
  Complete(0);
  EXPECT_THAT(PollIds(), ElementsAre(1));
  posted_->FlushAll();
  EXPECT_THAT(PollIds(), ElementsAre(2, 3, 4));
  Complete(2, IBV_WC_WR_FLUSH_ERR);
  EXPECT_THAT(PollIds(), IsEmpty());
}

TEST_F(PostedRequestsTest, ASuccessOfAnotherRequestThanOursIsReportedAsOurs) {
  posted_->sends().Note(0, 1, Telling::kRead);
  ASSERT_TRUE(Take({1, 1, 0}, false, false).ok());
  Complete(0, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  const std::vector<Completion> completions = Poll();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].opcode, CompletionOpcode::kRead);
}

TEST_F(PostedRequestsTest, AfterAResetLateCompletionsAreDropped) {
  Note(posted_->sends(), {1, 2});
  ASSERT_TRUE(Take({2, 2, 0}, false, false).ok());
  posted_->Reset();
  EXPECT_EQ(posted_->sends().room(), 4u);
  Complete(0);
  EXPECT_THAT(PollIds(), IsEmpty());
}

class CompletionPairTest : public PostedRequestsTest {
 protected:
  absl::Status Of(CompletionQueue* sends, CompletionQueue* receives) {
    QueuePairOptions options;
    options.send_queue = sends;
    options.receive_queue = receives;
    return CompletionPair::Of(options, *CoreOf(*queue_)->context()).status();
  }
};

TEST_F(CompletionPairTest, QueuesOfOneDeviceAndOneLoopArePaired) {
  EXPECT_TRUE(Of(queue_.get(), queue_.get()).ok());
  EXPECT_TRUE(Of(queue_.get(), other_queue_.get()).ok());
}

TEST_F(CompletionPairTest, NoQueueOrOneOfAnotherLoopIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Of(queue_.get(), nullptr)));
  os::EpollLoop elsewhere;
  const auto queue = *device_->CreateCompletionQueue(elsewhere, 16, [] {});
  EXPECT_TRUE(absl::IsInvalidArgument(Of(queue_.get(), queue.get())));
}

TEST_F(CompletionPairTest, AQueuePairForgetsInBothQueues) {
  const CompletionPair pair = PairOf(*queue_, *other_queue_);
  pair.Add(*this);
  pair.sends().AddFlush(kNumber, 0);
  pair.receives().AddFlush(kNumber, kReceiveMark);
  pair.Forget(*this, /*for_good=*/false);
  EXPECT_FALSE(pair.sends().AnyFlushed());
  EXPECT_FALSE(pair.receives().AnyFlushed());
  pair.Remove(*this);
  CoreOf(*other_queue_)->Forget(*this, /*for_good=*/true);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
