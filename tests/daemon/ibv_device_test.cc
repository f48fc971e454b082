// The numbers of real verbs, and the errors without them. The devices themselves are tested in the
// lab.
#include "lib/daemon/devices/ibv_device.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/short_folder.h"

namespace tokamak::daemon {
namespace {

TEST(IbvDeviceTest, CountersAreNumbersByTheirOwnNames) {
  const testing_support::ShortFolder folder;
  std::ofstream(folder.Path("sent_pkts")) << "7\n";
  std::ofstream(folder.Path("rcvd_pkts")) << "18446744073709551615\n";
  std::ofstream(folder.Path("broken")) << "none\n";
  std::ofstream(folder.Path(std::string(200, 'x'))) << "1\n";
  std::vector<NamedNumber> numbers;
  AddCounters(folder.path(), numbers);
  ASSERT_EQ(numbers.size(), 2u);
  EXPECT_EQ(numbers[0].name, "rdma_rcvd_pkts");
  EXPECT_EQ(numbers[0].value, UINT64_MAX);
  EXPECT_EQ(numbers[1].name, "rdma_sent_pkts");
  EXPECT_EQ(numbers[1].value, 7u);
  AddCounters(folder.Path("missing"), numbers);
  EXPECT_EQ(numbers.size(), 2u);
}

TEST(IbvDeviceTest, AFolderOfThousandsGivesNoMoreThanTheBound) {
  const testing_support::ShortFolder folder;
  for (size_t i = 0; i < kMostCounters + 10; ++i) std::ofstream(folder.Path("c" + std::to_string(i))) << i << "\n";
  std::vector<NamedNumber> numbers;
  AddCounters(folder.path(), numbers);
  EXPECT_EQ(numbers.size(), kMostCounters);
}

TEST(IbvDeviceTest, AMissingDeviceIsReported) {
  const auto opened = OpenDevice("ibv:none_such0", {});
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("none_such0"), std::string::npos) << opened.status();
}

// Peers with the address 0.0.0.0 would each connect to themselves.
TEST(IbvDeviceTest, AnExchangeOverTcpNeedsAnAddressThatPeersReach) {
  DeviceSettings settings;
  settings.connect_by = ConnectBy::kTcp;
  for (const char* address : {"0.0.0.0:7000", "[::]:7000"}) {
    settings.address = *verbs::Address::Parse(address);
    const auto opened = OpenDevice("ibv:none_such0", settings);
    EXPECT_TRUE(absl::IsInvalidArgument(opened.status())) << opened.status();
    EXPECT_NE(opened.status().message().find("0.0.0.0"), std::string::npos) << opened.status();
  }
}

// Which no flag lets through: that it is refused shows that it arrives.
TEST(IbvDeviceTest, EveryWayOfConnectingSetsTheServiceLevel) {
  for (const ConnectBy by : {ConnectBy::kRdmaCm, ConnectBy::kTcp}) {
    DeviceSettings settings;
    settings.connect_by = by;
    settings.address = *verbs::Address::Parse("10.0.0.1:7000");
    settings.fabric.service_level = 16;
    const auto opened = OpenDevice("ibv:none_such0", settings);
    EXPECT_TRUE(absl::IsInvalidArgument(opened.status())) << opened.status();
  }
}

TEST(IbvDeviceTest, PacketsOfRealVerbsAreNotOursToWrite) {
  DeviceSettings settings;
  settings.pcap_path = "/tmp/x.pcap";
  const auto opened = OpenDevice("ibv:none_such0", settings);
  EXPECT_TRUE(absl::IsInvalidArgument(opened.status())) << opened.status();
  EXPECT_NE(opened.status().message().find("--pcap"), std::string::npos) << opened.status();
}

TEST(IbvDeviceTest, TheCongestionControlOfRealVerbsIsNotOurs) {
  DeviceSettings settings;
  settings.congestion.emplace();
  const auto opened = OpenDevice("ibv:none_such0", settings);
  EXPECT_TRUE(absl::IsInvalidArgument(opened.status())) << opened.status();
  EXPECT_NE(opened.status().message().find("--congestion"), std::string::npos) << opened.status();
}

}  // namespace
}  // namespace tokamak::daemon
