#include "lib/cli/doctor/rdma_facts.h"

#include <gtest/gtest.h>

#include "tests/cli/doctor/fake_machine.h"

namespace tokamak::cli::doctor {
namespace {

using verbs::ibv::GidType;
using verbs::ibv::LinkKind;

TEST(RdmaFactsTest, AMachineWithoutTheClassHasNoDevices) {
  FakeMachine machine;
  EXPECT_TRUE(ReadRdmaDevices(machine.files()).empty());
}

TEST(RdmaFactsTest, SoftRoceIsReadWithItsPortGidsAndNetworkDevice) {
  FakeMachine machine;
  machine.AddRxe("rxe0", "v0");
  const auto devices = ReadRdmaDevices(machine.files());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "rxe0");
  EXPECT_EQ(devices[0].driver, "rdma_rxe");
  ASSERT_EQ(devices[0].ports.size(), 1u);
  const PortFacts& port = devices[0].ports[0];
  EXPECT_EQ(port.number, 1u);
  EXPECT_EQ(port.state, "ACTIVE");
  EXPECT_EQ(port.physical, "LinkUp");
  EXPECT_EQ(port.link, LinkKind::kRoce);
  EXPECT_EQ(port.netdev.name, "v0");
  EXPECT_TRUE(port.netdev.here);
  EXPECT_TRUE(port.netdev.up);
  EXPECT_EQ(port.netdev.mtu, 9000u);
  ASSERT_EQ(port.gids.size(), 2u) << "empty entries are left out";
  EXPECT_EQ(port.gids[1].index, 1u);
  EXPECT_EQ(port.gids[1].type, GidType::kRoceV2);
  EXPECT_EQ(verbs::ibv::GidText(port.gids[1].gid), "10.0.0.1");
  EXPECT_TRUE(port.gids[1].net_device_up);
}

TEST(RdmaFactsTest, DevicesComeInTheOrderOfTheirNumbers) {
  FakeMachine machine;
  for (const char* name : {"rxe10", "rxe2", "rxe1"}) machine.AddDevice(name, "rxe", "1: CA", "Ethernet");
  const auto devices = ReadRdmaDevices(machine.files());
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].name, "rxe1");
  EXPECT_EQ(devices[1].name, "rxe2");
  EXPECT_EQ(devices[2].name, "rxe10");
}

TEST(RdmaFactsTest, ANetworkDeviceThatIsSwitchedOffIsDownWhateverItsStateSays) {
  FakeMachine machine;
  machine.AddRxe("rxe0", "v0");
  machine.Put("/sys/class/net/v0/operstate", "unknown");
  machine.Put("/sys/class/net/v0/flags", "0x1002");
  const auto devices = ReadRdmaDevices(machine.files());
  EXPECT_FALSE(devices[0].ports[0].netdev.up);
  EXPECT_FALSE(devices[0].ports[0].gids[1].net_device_up);
}

TEST(RdmaFactsTest, ANetworkDeviceOfAnotherNamespaceIsNotHere) {
  FakeMachine machine;
  machine.AddRxe("rxe0", "v0");
  machine.Remove("/sys/class/net/v0");
  const auto devices = ReadRdmaDevices(machine.files());
  EXPECT_EQ(devices[0].ports[0].netdev.name, "v0");
  EXPECT_FALSE(devices[0].ports[0].netdev.here);
}

TEST(RdmaFactsTest, SoftIwarpIsFoundOnTheNetworkDeviceWhoseHardwareAddressItsGidHas) {
  FakeMachine machine;
  machine.AddDevice("siw0", "Software iWARP stack", "4: RNIC", "Ethernet");
  machine.Put("/sys/class/infiniband/siw0/ports/1/gids/0", "0200:0000:0007:0000:0000:0000:0000:0000");
  machine.PutNetdev("v0", "up", 1500, "02:00:00:00:00:06");
  machine.PutNetdev("v1", "up", 1500, "02:00:00:00:00:07");
  const auto devices = ReadRdmaDevices(machine.files());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].driver, "siw");
  EXPECT_EQ(devices[0].ports[0].link, LinkKind::kIwarp);
  EXPECT_EQ(devices[0].ports[0].netdev.name, "v1");
}

TEST(RdmaFactsTest, InfinibandHasADriverAndNoNetworkDevice) {
  FakeMachine machine;
  machine.AddDevice("mlx5_0", "host1 mlx5_0", "1: CA", "InfiniBand");
  machine.Link("/sys/class/infiniband/mlx5_0/device/driver", "../../../bus/pci/drivers/mlx5_core");
  machine.PutGid("mlx5_0", 0, "fe80:0000:0000:0000:0002:c903:0001:0001", "IB/RoCE v1", "");
  machine.PutState("mlx5_0", "2: INIT", "5: LinkUp");
  const auto devices = ReadRdmaDevices(machine.files());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].driver, "mlx5_core");
  const PortFacts& port = devices[0].ports[0];
  EXPECT_EQ(port.link, LinkKind::kInfiniBand);
  EXPECT_EQ(port.state, "INIT");
  EXPECT_EQ(port.netdev.name, "");
  ASSERT_EQ(port.gids.size(), 1u);
  EXPECT_EQ(port.gids[0].type, GidType::kInfiniBand);
}

TEST(RdmaFactsTest, WhatIsNoGidIsLeftOut) {
  FakeMachine machine;
  machine.AddDevice("rxe0", "rxe", "1: CA", "Ethernet");
  machine.PutGid("rxe0", 0, "not a gid", "RoCE v2", "v0");
  machine.PutGid("rxe0", 1, "", "RoCE v2", "v0");
  machine.Put("/sys/class/infiniband/rxe0/ports/1/gids/x", "0000:0000:0000:0000:0000:ffff:0a00:0001");
  EXPECT_TRUE(ReadRdmaDevices(machine.files())[0].ports[0].gids.empty());
}

}  // namespace
}  // namespace tokamak::cli::doctor
