#include "lib/cli/doctor/machine_facts.h"

#include <gtest/gtest.h>

#include "tests/cli/doctor/fake_machine.h"

namespace tokamak::cli::doctor {
namespace {

class MachineFactsTest : public testing::Test {
 protected:
  MachineFactsTest() { machine_.BeHealthy(); }
  MachineFacts Read() { return ReadMachine(machine_.files()); }

  FakeMachine machine_;
};

TEST_F(MachineFactsTest, LimitsOnLockedMemoryAreReadWithTheirTwoValues) {
  machine_.PutLockLimit("8388608", "unlimited");
  const MachineFacts facts = Read();
  EXPECT_EQ(facts.lock_limit, 8388608u);
  EXPECT_EQ(facts.lock_limit_hard, kUnlimited);
}

TEST_F(MachineFactsTest, TheHardLimitOfDescriptorsIsRead) {
  machine_.PutLockLimit("8388608", "unlimited");
  EXPECT_EQ(Read().descriptor_limit_hard, 20000u);
  machine_.Put("/proc/self/limits", "");
  EXPECT_EQ(Read().descriptor_limit_hard, 0u);
}

TEST_F(MachineFactsTest, CapIpcLockFreesFromTheLimit) {
  EXPECT_FALSE(Read().locks_without_limit);
  machine_.Put("/proc/self/status", "CapEff:\t0000000000004000");
  EXPECT_TRUE(Read().locks_without_limit);
}

TEST_F(MachineFactsTest, CapIpcLockCountsForNothingInAUserNamespace) {
  machine_.Put("/proc/self/status", "CapEff:\t000001ffffffffff");
  machine_.Put("/proc/self/uid_map", "         0       1000          1");
  EXPECT_FALSE(Read().locks_without_limit);
}

TEST_F(MachineFactsTest, CapNetAdminFreesFromTheLimitOnBuffers) {
  EXPECT_FALSE(Read().exceeds_buffer_limit);
  machine_.Put("/proc/self/status", "CapEff:\t0000000000001000");
  EXPECT_TRUE(Read().exceeds_buffer_limit);
}

TEST_F(MachineFactsTest, PromisedHugePagesAreNotFree) {
  machine_.Put("/proc/meminfo", "HugePages_Total: 100\nHugePages_Free: 90\nHugePages_Rsvd: 30\nHugepagesize: 2048 kB");
  const MachineFacts facts = Read();
  EXPECT_EQ(facts.huge_pages, 100u);
  EXPECT_EQ(facts.huge_pages_free, 60u);
  EXPECT_EQ(facts.huge_page_size, 2048u * 1024);
}

TEST_F(MachineFactsTest, TheClassesOfTheKernelShowWhatIsLoaded) {
  EXPECT_TRUE(Read().verbs_loaded);
  EXPECT_TRUE(Read().cm_loaded);
  machine_.Remove("/sys/class/misc");
  EXPECT_FALSE(Read().cm_loaded);
  machine_.Remove("/sys/class/infiniband_verbs");
  EXPECT_FALSE(Read().verbs_loaded);
}

TEST_F(MachineFactsTest, SoftRoceIsThereWhenThisKernelsModulesHaveIt) {
  EXPECT_FALSE(Read().has_soft_roce);
  machine_.Put("/lib/modules/5.10.0/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko", "");
  EXPECT_FALSE(Read().has_soft_roce);  // another kernel's
  machine_.Put("/lib/modules/6.1.0-56-amd64/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko", "");
  EXPECT_TRUE(Read().has_soft_roce);
}

TEST_F(MachineFactsTest, OnlyTheFilesOfVerbsAndOfTheManagerAreDeviceNodes) {
  machine_.Put("/dev/infiniband/uverbs0", "");
  machine_.Put("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_2");
  machine_.Put("/dev/infiniband/umad0", "");
  const MachineFacts facts = Read();
  ASSERT_EQ(facts.nodes.size(), 2u);
  EXPECT_EQ(facts.nodes[0].name, "rdma_cm");
  EXPECT_EQ(facts.nodes[1].name, "uverbs0");
  EXPECT_TRUE(facts.nodes[1].may_open);
  EXPECT_EQ(facts.nodes[1].device, "mlx5_2");
  EXPECT_EQ(facts.nodes[0].device, "");
}

TEST_F(MachineFactsTest, CardsForRdmaAreKnownByTheirVendorAndClass) {
  machine_.Put("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x15b3");
  machine_.Put("/sys/bus/pci/devices/0000:3b:00.0/class", "0x020000");
  machine_.Put("/sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086");
  machine_.Put("/sys/bus/pci/devices/0000:00:1f.0/class", "0x020000");  // plain Ethernet
  const MachineFacts facts = Read();
  ASSERT_EQ(facts.cards.size(), 1u);
  EXPECT_EQ(facts.cards[0], "mlx5_ib (mlx4_ib for ConnectX-3) for 0000:3b:00.0");
}

TEST_F(MachineFactsTest, ContainersAreKnownByTheirMarksAndGroups) {
  EXPECT_EQ(Read().container, "");
  machine_.Put("/proc/self/cgroup", "0::/system.slice/docker-0123.scope");
  EXPECT_EQ(Read().container, "a container");
  machine_.Put("/.dockerenv", "");
  EXPECT_EQ(Read().container, "a Docker container");
}

TEST_F(MachineFactsTest, ASettingOfTheWholeMachineShowsTheFirstNetworkNamespace) {
  EXPECT_TRUE(Read().in_initial_network);
  machine_.Remove("/proc/sys/net/core");
  const MachineFacts facts = Read();
  EXPECT_FALSE(facts.in_initial_network);
  EXPECT_FALSE(facts.receive_buffer_limit.has_value());
}

TEST_F(MachineFactsTest, AMachineThatTellsNothingHasNothing) {
  FakeMachine empty;
  const MachineFacts facts = ReadMachine(empty.files());
  EXPECT_FALSE(facts.verbs_loaded);
  EXPECT_FALSE(facts.locks_without_limit);
  EXPECT_EQ(facts.lock_limit, 0u);
  EXPECT_TRUE(facts.nodes.empty());
}

}  // namespace
}  // namespace tokamak::cli::doctor
