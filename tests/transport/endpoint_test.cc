// Transfers between two endpoints, each protocol, byte by byte.
#include "lib/transport/endpoint.h"

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

struct Setting {
  Protocol protocol;
  bool on_demand;
  uint32_t bulk_queue_pairs;
  bool loopback;
};

std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  const Setting& s = info.param;
  return absl::StrCat(ToString(s.protocol), s.on_demand ? "_on_demand" : "_arena", "_", s.bulk_queue_pairs,
                      s.loopback ? "_loopback" : "_sim");
}

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    for (bool on_demand : {false, true}) {
      for (uint32_t bulk : {1, 2, 3}) settings.push_back({protocol, on_demand, bulk, bulk == 2});
    }
  }
  return settings;
}

class TransferTest : public ::testing::TestWithParam<Setting> {
 protected:
  NodeOptions OptionsOf(const Setting& setting) {
    NodeOptions options;
    options.on_demand = setting.on_demand;
    options.endpoint.bulk_queue_pairs = setting.bulk_queue_pairs;
    return options;
  }
  WorldOptions WorldOf(const Setting& setting) {
    WorldOptions options;
    options.loopback = setting.loopback;
    options.link = FastLink();
    return options;
  }
};

TEST_P(TransferTest, TheOwnerLearnsWhichGenerationIsAskedFor) {
  World world(WorldOf(GetParam()));
  Node& owner = world.Add(OptionsOf(GetParam()));
  Node& puller = world.Add(OptionsOf(GetParam()));
  PullRequest request = puller.Request(owner, owner.AddObject(1000), GetParam().protocol);
  request.generation = base::Generation{0x1122334455667788};
  ASSERT_TRUE(world.Finish(puller.Pull(request)));
  EXPECT_EQ(owner.source.last_version(), (base::ObjectVersion{request.id, request.generation}));
}

TEST_P(TransferTest, EverySizeArrivesByteForByte) {
  World world(WorldOf(GetParam()));
  Node& owner = world.Add(OptionsOf(GetParam()));
  Node& puller = world.Add(OptionsOf(GetParam()));
  const uint64_t body = owner.options.endpoint.slot_size - 64;
  const uint64_t chunk = owner.options.endpoint.chunk_size;
  uint64_t count = 0;
  uint64_t bytes = 0;
  for (uint64_t size : std::vector<uint64_t>{0, 1, 63, body - 1, body, body + 1, 3 * body, chunk - 1, chunk, chunk + 1,
                                             2 * chunk, 3 * chunk + 17}) {
    const base::ObjectId id = owner.AddObject(size - size / 3, size / 3);
    auto outcome = puller.Pull(owner, id, GetParam().protocol);
    ASSERT_TRUE(world.Finish(outcome)) << size;
    ASSERT_TRUE(outcome->status.ok()) << size << ": " << outcome->status;
    EXPECT_TRUE(outcome->right) << size;
    EXPECT_EQ(outcome->report.protocol, GetParam().protocol) << size;
    EXPECT_EQ(outcome->report.size.total(), size);
    EXPECT_EQ(outcome->report.size.metadata, size / 3);
    EXPECT_FALSE(outcome->report.downgraded);
    ++count;
    bytes += size;
  }
  world.ExpectClean();
  const auto by = static_cast<size_t>(GetParam().protocol);
  EXPECT_EQ(puller.endpoint->counters().transfers_pulled[by], count);
  EXPECT_EQ(puller.endpoint->counters().bytes_pulled[by], bytes);
  EXPECT_EQ(owner.endpoint->counters().transfers_served[by], count);
  EXPECT_EQ(owner.endpoint->counters().bytes_served[by], bytes);
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 1u);
  EXPECT_EQ(owner.endpoint->counters().protocol_errors + puller.endpoint->counters().protocol_errors, 0u);
  EXPECT_EQ(owner.endpoint->counters().late_messages + puller.endpoint->counters().late_messages, 0u);
}

TEST_P(TransferTest, ManyAtOnceBothWays) {
  World world(WorldOf(GetParam()));
  Node& a = world.Add(OptionsOf(GetParam()));
  Node& b = world.Add(OptionsOf(GetParam()));
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 100; ++i) {
    const uint64_t size = i * 977 % 50000;
    outcomes.push_back(a.Pull(b, b.AddObject(size), GetParam().protocol));
    outcomes.push_back(b.Pull(a, a.AddObject(size), GetParam().protocol));
  }
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(world.Finish(outcome));
    ASSERT_TRUE(outcome->status.ok()) << outcome->status;
    EXPECT_TRUE(outcome->right);
  }
  world.ExpectClean();
}

INSTANTIATE_TEST_SUITE_P(All, TransferTest, ::testing::ValuesIn(Settings()), NameOf);

class TurnsTest : public ::testing::TestWithParam<Protocol> {};

TEST_P(TurnsTest, ASmallTransferDoesNotWaitForLargeOnes) {
  WorldOptions options;
  options.link = FastLink();
  World world(options);
  Node& owner = world.Add();
  Node& puller = world.Add();
  std::vector<std::shared_ptr<Outcome>> large;
  for (int i = 0; i < 6; ++i) large.push_back(puller.Pull(owner, owner.AddObject(32 << 20), GetParam()));
  world.RunFor(Milliseconds(1));
  const auto small = puller.Pull(owner, owner.AddObject(64 << 10), GetParam());
  ASSERT_TRUE(world.RunUntil([&] { return small->done; }, Seconds(60)));
  EXPECT_TRUE(small->status.ok()) << small->status;
  for (const auto& one : large) EXPECT_FALSE(one->done);
}

INSTANTIATE_TEST_SUITE_P(Bulk, TurnsTest, ::testing::Values(Protocol::kRead, Protocol::kWrite),
                         [](const auto& setting) { return std::string(ToString(setting.param)); });

}  // namespace
}  // namespace tokamak::transport::testing
