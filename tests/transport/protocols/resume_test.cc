// A pull that goes on from what an earlier one, which was cut, left in place.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

constexpr uint64_t kResumedSize = 8 << 20;  // more than three seconds at 2.5 MB/s

struct Setting {
  Protocol protocol;
  uint32_t bulk_queue_pairs;
  bool like_iwarp = false;
};

std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  return absl::StrCat(ToString(info.param.protocol), "_", info.param.bulk_queue_pairs,
                      info.param.like_iwarp ? "_iwarp" : "");
}

WorldOptions SlowWorld() {
  WorldOptions slow;
  slow.link.picoseconds_per_byte = 400'000;
  return slow;
}

class ResumeTest : public ::testing::TestWithParam<Setting> {
 protected:
  ResumeTest() : owner_(world_.Add(Options())), puller_(world_.Add(Options())) {
    request_ = puller_.Request(owner_, owner_.AddObject(kResumedSize - 100, 100), GetParam().protocol);
    request_.deadline = Seconds(30);
    sink_.keep = true;
    sink_.memory = puller_.arena.Take(kResumedSize);
    std::memset(sink_.memory.data(), 0x11, kResumedSize);
  }

  static NodeOptions Options() {
    NodeOptions options;
    options.like_iwarp = GetParam().like_iwarp;
    options.endpoint.chunk_size = 64 * 1024;
    options.endpoint.bulk_queue_pairs = GetParam().bulk_queue_pairs;
    options.endpoint.reliability.ack_timeout = Seconds(4);  // messages wait behind a good part of a second of bulk data
    return options;
  }
  bool by_write() const { return GetParam().protocol == Protocol::kWrite; }

  // Bytes that this pull moved: as it counts, and as the devices do.
  uint64_t Moved() const {
    uint64_t moved = 0;
    for (const auto& bytes : puller_.endpoint->counters().bytes_pulled) moved += bytes;
    return moved;
  }
  uint64_t MovedByDevices() const {
    return owner_.endpoint->counters().rail_bytes[0] + puller_.endpoint->counters().rail_bytes[0];
  }

  // Bytes that are reported as arrived are there; the others are spoiled, so that they have to
  // come.
  void Take(const std::shared_ptr<Outcome>& outcome) {
    ASSERT_TRUE(world_.Finish(outcome));
    ASSERT_FALSE(outcome->status.ok());
    const uint64_t arrived = outcome->report.arrived;
    ASSERT_LT(arrived, kResumedSize);
    ASSERT_GE(arrived, request_.arrived);
    EXPECT_TRUE(IsObject(request_.id, sink_.memory.subspan(0, arrived)));
    std::memset(sink_.memory.data() + arrived, 0x22, kResumedSize - arrived);
    request_.arrived = arrived;
  }
  void ExpectTheRestComes() {
    world_.RunFor(Seconds(1));
    const uint64_t before = Moved(), before_by_devices = MovedByDevices();
    auto outcome = puller_.Pull(request_, sink_);
    ASSERT_TRUE(world_.Finish(outcome));
    ASSERT_TRUE(outcome->status.ok()) << outcome->status;
    EXPECT_TRUE(outcome->right);
    EXPECT_EQ(outcome->report.arrived, kResumedSize);
    EXPECT_EQ(outcome->report.protocol, GetParam().protocol);
    EXPECT_EQ(Moved() - before, kResumedSize - request_.arrived);
    world_.RunFor(Seconds(1));  // the owner hears a little later of its last WRITE
    if (GetParam().protocol != Protocol::kEager) {
      EXPECT_EQ(MovedByDevices() - before_by_devices, kResumedSize - request_.arrived);
    }
    world_.ExpectClean();
  }

  World world_{SlowWorld()};
  Node& owner_;
  Node& puller_;
  PullRequest request_;
  SinkOptions sink_;
};

TEST_P(ResumeTest, ResumesAfterACancelledPull) {
  auto outcome = puller_.Pull(request_, sink_);
  world_.RunFor(Milliseconds(2200));
  puller_.endpoint->CancelPull(outcome->pull);
  Take(outcome);
  if (!GetParam().like_iwarp || !by_write()) {
    EXPECT_GT(request_.arrived, kResumedSize / 3);
  }
  ExpectTheRestComes();
}

TEST_P(ResumeTest, ResumesAfterEachOfSeveralDeadlines) {
  request_.deadline = Milliseconds(1500);
  for (int cuts = 0; cuts < 2; ++cuts) {
    const uint64_t before = request_.arrived;
    Take(puller_.Pull(request_, sink_));
    if (!GetParam().like_iwarp || !by_write()) {
      EXPECT_GT(request_.arrived, before);
    }
  }
  request_.deadline = Seconds(30);
  ExpectTheRestComes();
}

TEST_P(ResumeTest, ResumesAfterTheOwnerEnded) {
  auto outcome = puller_.Pull(request_, sink_);
  world_.RunFor(Milliseconds(2200));
  owner_.DropEndpoint();
  Take(outcome);
  if (!GetParam().like_iwarp || !by_write()) {
    EXPECT_GT(request_.arrived, kResumedSize / 8);
  }
  owner_.Reopen();
  ExpectTheRestComes();
}

TEST_P(ResumeTest, ResumesForTheLastByte) {
  request_.arrived = kResumedSize - 1;
  FillObject(request_.id, sink_.memory);
  sink_.memory.back() ^= 1;
  ExpectTheRestComes();
}

INSTANTIATE_TEST_SUITE_P(All, ResumeTest,
                         ::testing::Values(Setting{Protocol::kEager, 1}, Setting{Protocol::kRead, 1},
                                           Setting{Protocol::kRead, 3}, Setting{Protocol::kWrite, 1},
                                           Setting{Protocol::kWrite, 3}, Setting{Protocol::kRead, 1, true},
                                           Setting{Protocol::kWrite, 1, true}),
                         NameOf);

// Impossible reports about an object.
TEST(ResumeBoundsTest, MoreThanTheObjectCannotHaveArrived) {
  World world;
  Node& owner = world.Add();
  Node& puller = world.Add();
  PullRequest request = puller.Request(owner, owner.AddObject(1000), Protocol::kRead);
  for (const uint64_t arrived : {1000, 1001}) {
    request.arrived = arrived;
    auto outcome = puller.Pull(request);
    ASSERT_TRUE(world.Finish(outcome));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kInvalidArgument) << outcome->status;
  }
  request.arrived = 999;
  request.id = base::ObjectId::FromName("nowhere");
  auto outcome = puller.Pull(request);
  ASSERT_TRUE(world.Finish(outcome));
  EXPECT_EQ(outcome->report.arrived, 999u) << "what was there is there still";
  world.ExpectClean();
}

// An owner that says of its write that more arrived than the object has.
TEST(ResumeBoundsTest, AnOwnerCannotHaveWrittenMoreThanTheObject) {
  World world;
  Node& puller = world.Add();
  RawPeer owner(world, 99);
  owner.Listen();
  PullRequest request;
  request.id = base::ObjectId::FromName("x");
  request.owner = owner.service();
  request.size = {5000, 0};
  request.arrived = 1000;
  request.protocol = Protocol::kWrite;
  auto outcome = puller.Pull(request);
  const RawPeer::Received* asked = owner.Await(MessageKind::kTransfer);
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(asked->header.arrived, 1000u);
  world.RunFor(Milliseconds(1));
  Header progress = Plain(MessageKind::kProgress, asked->header.transfer);
  progress.offset = 1;
  progress.arrived = 5001;
  owner.Send(progress);
  ASSERT_TRUE(world.Finish(outcome, Seconds(1)));
  EXPECT_EQ(puller.endpoint->counters().protocol_errors, 1u);
  EXPECT_EQ(outcome->report.arrived, 1000u);
  world.ExpectClean();
}

}  // namespace
}  // namespace tokamak::transport::testing
