// A node that leaves hands what was put on it over to others.
#include "lib/node/evacuation.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Seconds;

class EvacuationTest : public NodeTest {
 protected:
  EvacuationReport Evacuate(size_t i, base::Duration limit = Seconds(60)) {
    absl::optional<EvacuationReport> report;
    const base::Pending call = at(i).node().Evacuate(
        limit, [this](const EvacuationReport&) { ++reports_; }, [&](const EvacuationReport& end) { report = end; });
    EXPECT_FALSE(report.has_value()) << "answered inside the call";
    EXPECT_TRUE(cluster_->RunUntil([&] { return report.has_value(); }, limit + Seconds(1)));
    return report.value_or(EvacuationReport());
  }
  void Leave(size_t i) {
    bool left = false;
    at(i).node().Leave([&](const absl::Status&) { left = true; });
    EXPECT_TRUE(cluster_->RunUntil([&] { return left; }));
    cluster_->RunFor(Seconds(1));
  }

  int reports_ = 0;
};

TEST_F(EvacuationTest, WhatWasPutIsKeptElsewhere) {
  Build(3);
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    names.push_back("x" + std::to_string(i));
    ASSERT_EQ(at(1).Put(names.back(), static_cast<uint64_t>(i) * 5000, 3), absl::OkStatus());
  }
  cluster_->Settle();
  const EvacuationReport report = Evacuate(1);
  EXPECT_EQ(report.objects, 40u) << report.trouble;
  EXPECT_EQ(report.left_objects, 0u);
  Leave(1);
  for (const std::string& name : names) EXPECT_NE(Read(2, name), base::kNoGeneration) << name;
  // Kept, not only copied: nothing of it may be evicted.
  EXPECT_EQ(at(0).store().statistics().kept_bytes + at(2).store().statistics().kept_bytes, report.bytes);
}

// Before and behind what is being handed over, and sealed before or after that was listed.
TEST_F(EvacuationTest, WhatIsPutMeanwhileIsHandedOverOnce) {
  Build(3);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(at(1).Put(absl::StrCat("x", i), 1000), absl::OkStatus());
  cluster_->Settle();
  absl::optional<EvacuationReport> report;
  const base::Pending call = at(1).node().Evacuate(
      Seconds(60), [](const EvacuationReport&) {}, [&](const EvacuationReport& end) { report = end; });
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(at(1).Put(absl::StrCat("y", i), 1000), absl::OkStatus());
    cluster_->RunFor(base::Microseconds(5));
  }
  ASSERT_FALSE(report.has_value());
  ASSERT_TRUE(cluster_->RunUntil([&] { return report.has_value(); }, Seconds(61)));
  EXPECT_EQ(report->objects, 300u) << report->trouble;
  EXPECT_EQ(report->left_objects, 0u);
  EXPECT_EQ(at(0).store().statistics().kept_bytes + at(2).store().statistics().kept_bytes, report->bytes);
}

TEST_F(EvacuationTest, ACopyThatIsThereAlreadyIsKeptFromThenOn) {
  Build(2);
  Put(1, "x", 1000);
  ASSERT_EQ(cluster_->Get(at(0), "x"), absl::OkStatus());
  EXPECT_EQ(Evacuate(1).objects, 1u);
  at(0).store().Evict(1 << 30);
  EXPECT_TRUE(at(0).Has("x"));
  EXPECT_EQ(at(0).store().CheckConsistency(), absl::OkStatus());
}

// Or a deletion would not find it, and it is never given up.
TEST_F(EvacuationTest, WhatIsKeptIsKnownToTheDirectory) {
  Build(3);
  ASSERT_EQ(at(1).Put("small", 100), absl::OkStatus());
  ASSERT_EQ(at(1).Put("large", 1'000'000), absl::OkStatus());
  cluster_->Settle();
  EXPECT_EQ(Evacuate(1).objects, 2u);
  for (const std::string name : {"small", "large"}) {
    const size_t keeper = at(0).Has(name) ? 0 : 2;
    EXPECT_FALSE(at(keeper).node().membership().IsUnannounced({Id(name), GenerationOn(keeper, name)})) << name;
  }
}

TEST_F(EvacuationTest, ANodeWithoutRoomIsFollowedByTheNextAndWhatNobodyTakesIsSaid) {
  Build(2);
  sim::HostOptions small;
  small.memory = 64 << 10;
  cluster_->Add(small);
  cluster_->Settle();
  Put(1, "fits", 1'000'000);
  Put(1, "too-large", 7'500'000 - 1'000'000);
  Put(0, "there", 4'000'000);
  const EvacuationReport report = Evacuate(1);
  EXPECT_EQ(report.objects, 1u);
  EXPECT_EQ(report.left_objects, 1u);
  EXPECT_EQ(report.left_bytes, 6'500'000u);
  EXPECT_TRUE(absl::IsResourceExhausted(report.trouble)) << report.trouble;
}

TEST_F(EvacuationTest, ANodeThatIsAloneSaysSo) {
  Build(1);
  Put(0, "x", 1000);
  const EvacuationReport report = Evacuate(0);
  EXPECT_EQ(report.left_objects, 1u);
  EXPECT_TRUE(absl::IsNotFound(report.trouble)) << report.trouble;
}

TEST_F(EvacuationTest, EndsAtItsLimitWithProgressOnTheWay) {
  sim::ClusterOptions options;
  options.link.picoseconds_per_byte = 1'000'000;  // 8 Mb/s
  Build(2, {}, options);
  Put(1, "x", 7'000'000);
  const EvacuationReport report = Evacuate(1, Seconds(5));
  EXPECT_EQ(report.objects, 0u);
  EXPECT_EQ(report.left_objects, 1u);
  EXPECT_GE(reports_, 4);
}

TEST_F(EvacuationTest, MayBeDroppedAtAnyTime) {
  Build(2);
  Put(1, "x", 4'000'000);
  base::Pending call = at(1).node().Evacuate(
      Seconds(60), [](const EvacuationReport&) {}, [](const EvacuationReport&) { FAIL(); });
  ASSERT_TRUE(Serves(1));
  call.reset();
  cluster_->RunFor(Seconds(5));
}

TEST_F(EvacuationTest, RequestsAreTakenAsTheyWereWrittenAndNothingElse) {
  const Evacuation::Request request{{Id("x"), base::Generation{7}}, 100, 3};
  const std::vector<uint8_t> bytes = Evacuation::EncodeRequest(request);
  const auto decoded = Evacuation::DecodeRequest(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->version, request.version);
  EXPECT_EQ(decoded->data_size, 100u);
  EXPECT_EQ(decoded->metadata_size, 3u);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Evacuation::DecodeRequest(absl::MakeConstSpan(bytes).first(size)).has_value()) << size;
  }
  Build(1);
}

}  // namespace
}  // namespace tokamak::node
