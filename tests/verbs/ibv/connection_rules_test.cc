// Settlement between the two sides of a connection over real verbs, and their private data.
#include "lib/verbs/ibv/cm/connection_rules.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/verbs/ibv/fake_queue_pair.h"

namespace tokamak::verbs::ibv {
namespace {

TEST(ConnectionRulesTest, PrivateDataAndPathMtuTravelTogether) {
  for (uint32_t mtu : {256u, 512u, 1024u, 2048u, 4096u}) {
    for (size_t size : {size_t{0}, size_t{1}, kRdmaCmPrivateData}) {
      const std::vector<uint8_t> sent(size, 0xab);
      const Carried carried = ReadCarried(Carry(sent, mtu));
      EXPECT_EQ(carried.path_mtu, mtu);
      std::vector<uint8_t> padded = sent;
      padded.resize(kRdmaCmPrivateData);
      EXPECT_THAT(carried.private_data, testing::ElementsAreArray(padded));
    }
  }
}

TEST(ConnectionRulesTest, APeerWithoutOurTailTellsNothing) {
  EXPECT_FALSE(ReadCarried({}).path_mtu);
  EXPECT_FALSE(ReadCarried(std::vector<uint8_t>(kCarriedPrivateData)).path_mtu);
  CarriedData bytes = Carry({}, 1024);
  EXPECT_FALSE(ReadCarried(absl::MakeConstSpan(bytes).first(kCarriedPrivateData - 1)).path_mtu) << "cut off";
  bytes[kCarriedPrivateData - 1] = 6;
  EXPECT_FALSE(ReadCarried(bytes).path_mtu) << "no such MTU";
  bytes = Carry({}, 1024);
  bytes[kCarriedPrivateData - 2] = 2;
  EXPECT_FALSE(ReadCarried(bytes).path_mtu) << "another version";
}

TEST(ConnectionRulesTest, AnyBytesAreRead) {
  base::Random random(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<uint8_t> bytes(random.Below(256));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    const Carried carried = ReadCarried(bytes);
    for (size_t i = 0; i < std::min(bytes.size(), carried.private_data.size()); ++i) {
      EXPECT_EQ(carried.private_data[i], bytes[i]);
    }
  }
}

TEST(ConnectionRulesTest, ThePathMtuIsTheSmallest) {
  EXPECT_EQ(*AgreeOnPathMtu(1024, 4096, 4096), 1024u);
  EXPECT_EQ(*AgreeOnPathMtu(4096, 1024, 4096), 1024u);
  EXPECT_EQ(*AgreeOnPathMtu(4096, 4096, 2048), 2048u) << "a subnet may carry less than both ports";
  EXPECT_EQ(*AgreeOnPathMtu(4096, std::nullopt, 1024), 1024u);
}

TEST(ConnectionRulesTest, AForeignPeerWithTooLargeAnMtuIsRefused) {
  EXPECT_TRUE(absl::IsFailedPrecondition(AgreeOnPathMtu(1024, std::nullopt, 4096).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(KeepPathMtu(1024, std::nullopt, 4096).status()));
}

TEST(ConnectionRulesTest, TheSideThatAskedKeepsWhatWasDecided) {
  EXPECT_EQ(*KeepPathMtu(4096, 512, 4096), 512u);
  EXPECT_EQ(*KeepPathMtu(4096, std::nullopt, 1024), 1024u);
  EXPECT_FALSE(KeepPathMtu(1024, 2048, 4096).ok()) << "more than we said we take";
  EXPECT_FALSE(KeepPathMtu(4096, 4096, 2048).ok()) << "more than the route carries";
}

TEST(ConnectionRulesTest, ReadsAreLoweredToWhatBothSidesCan) {
  ReliabilityOptions ours;
  ours.reads_outstanding = 16;
  ours.reads_served = 8;
  ReliabilityOptions agreed = AgreeOnReads(ours, 128, 4, 2);
  EXPECT_EQ(agreed.reads_outstanding, 4) << "the peer serves no more";
  EXPECT_EQ(agreed.reads_served, 2) << "the peer asks for no more";
  agreed = AgreeOnReads(ours, 1, 255, 255);
  EXPECT_EQ(agreed.reads_outstanding, 1);
  EXPECT_EQ(agreed.reads_served, 1);
  agreed = AgreeOnReads(ours, 1000, 255, 255);
  EXPECT_EQ(agreed.reads_outstanding, 16);
}

TEST(ConnectionRulesTest, WrongOptionsAreRefused) {
  const std::vector<uint8_t> bytes(kRdmaCmPrivateData + 1);
  const auto refused = [&](auto change) {
    ConnectOptions options;
    EXPECT_TRUE(CheckConnectOptions(options, kRdmaCmPrivateData).ok());
    change(options);
    return absl::IsInvalidArgument(CheckConnectOptions(options, kRdmaCmPrivateData));
  };
  EXPECT_TRUE(refused([&](ConnectOptions& options) { options.private_data = bytes; }));
  EXPECT_TRUE(refused([&](ConnectOptions& options) { options.max_path_mtu = 1500; }));
  EXPECT_TRUE(refused([&](ConnectOptions& options) { options.max_path_mtu = 0; }));
  EXPECT_TRUE(refused([&](ConnectOptions& options) { options.reliability.retry_count = 7; }));
  EXPECT_TRUE(refused([&](ConnectOptions& options) { options.reliability.rnr_retry_count = 7; }));
  EXPECT_TRUE(refused([&](ConnectOptions& options) { options.deadline = base::Duration(); }));
}

TEST(ConnectionRulesTest, AQueuePairIsHeldByOneConnectionAndStartsInInit) {
  os::EpollLoop loop;
  FakeQueuePair queue_pair(loop, 7);
  {
    const auto held = HeldQueuePair::Take(queue_pair);
    ASSERT_TRUE(held.ok()) << held.status();
    EXPECT_EQ((*held)->connection_number(), 7u);
    EXPECT_TRUE(absl::IsFailedPrecondition(HeldQueuePair::Take(queue_pair).status()));
  }
  EXPECT_TRUE(HeldQueuePair::Take(queue_pair).ok());
  const Step error = ErrorStep();
  ASSERT_TRUE(queue_pair.Walk(error.attributes, error.mask).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(HeldQueuePair::Take(queue_pair).status()));
}

}  // namespace
}  // namespace tokamak::verbs::ibv
