#include "lib/cli/doctor/machine_checks.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace tokamak::cli::doctor {
namespace {

constexpr uint64_t kStore = 512 << 20;
constexpr uint64_t kWanted = 8 << 20;

void ExpectFinding(const Finding& finding, Verdict verdict, const std::string& seen, const std::string& advice) {
  EXPECT_EQ(finding.verdict, verdict) << finding.seen;
  EXPECT_TRUE(absl::StrContains(finding.seen, seen)) << finding.seen;
  EXPECT_TRUE(absl::StrContains(finding.advice, advice)) << finding.advice;
}

MachineFacts Healthy() {
  MachineFacts machine;
  machine.lock_limit = machine.lock_limit_hard = kUnlimited;
  machine.huge_page_size = 2 << 20;
  machine.verbs_loaded = machine.cm_loaded = true;
  machine.nodes = {{"rdma_cm", true}, {"uverbs0", true}};
  machine.receive_buffer_limit = 212992;
  return machine;
}

std::vector<RdmaFacts> Devices(const std::string& driver) { return {{"rxe0", driver, {}}}; }

TEST(MachineChecksTest, ModulesThatAreMissingAreNamed) {
  MachineFacts machine = Healthy();
  ExpectFinding(CheckModules(machine), Verdict::kOk, "are loaded", "");
  machine.cm_loaded = false;
  ExpectFinding(CheckModules(machine), Verdict::kFailed, "rdma_ucm is not", "modprobe rdma_ucm");
  ExpectFinding(CheckModules(machine, true), Verdict::kOk, "nor does --cm tcp need it", "");
  machine.verbs_loaded = false;
  ExpectFinding(CheckModules(machine), Verdict::kFailed, "ib_uverbs is not", "modprobe -a ib_uverbs rdma_ucm");
}

TEST(MachineChecksTest, WithoutADeviceTheAdviceIsWhatThisMachineCouldHave) {
  MachineFacts machine = Healthy();
  ExpectFinding(CheckDevices(machine, {}), Verdict::kFailed, "no RDMA device", "no rdma_rxe module");
  machine.has_soft_roce = true;
  ExpectFinding(CheckDevices(machine, {}), Verdict::kFailed, "no RDMA device", "rdma link add rxe0 type rxe");
  machine.cards = {"mlx5_ib for 0000:3b:00.0"};
  ExpectFinding(CheckDevices(machine, {}), Verdict::kFailed, "no RDMA device", "modprobe mlx5_ib");
}

TEST(MachineChecksTest, DevicesAreListedWithTheirDrivers) {
  ExpectFinding(CheckDevices(Healthy(), Devices("rdma_rxe")), Verdict::kOk, "rxe0 (rdma_rxe)", "");
}

TEST(MachineChecksTest, AContainerWithoutTheDeviceFilesIsToldHowToGetThem) {
  MachineFacts machine = Healthy();
  machine.nodes.clear();
  machine.container = "a Docker container";
  ExpectFinding(CheckPermission(machine, Devices("mlx5_core")), Verdict::kFailed,
                "a Docker container without /dev/infiniband", "--device /dev/infiniband");
  machine.container.clear();
  ExpectFinding(CheckPermission(machine, Devices("mlx5_core")), Verdict::kFailed, "not their files", "rdma-core");
  ExpectFinding(CheckPermission(machine, {}), Verdict::kNotApplicable, "not there", "");
}

TEST(MachineChecksTest, FilesThatMayNotBeOpenedAreNamed) {
  MachineFacts machine = Healthy();
  ExpectFinding(CheckPermission(machine, Devices("siw")), Verdict::kOk, "rdma_cm, uverbs0 may be opened", "");
  machine.nodes[1].may_open = false;
  ExpectFinding(CheckPermission(machine, Devices("siw")), Verdict::kFailed, "write uverbs0",
                "chmod 666 /dev/infiniband/uverbs0");
}

TEST(MachineChecksTest, AFileThatNoNamedDeviceNeedsIsMentionedOnly) {
  MachineFacts machine = Healthy();
  machine.nodes = {{"rdma_cm", true}, {"uverbs0", true, "rxe0"}, {"uverbs1", false, "rxe1"}};
  const std::vector<RdmaFacts> devices = {{"rxe0", "rdma_rxe", {}}, {"rxe1", "rdma_rxe", {}}};
  ExpectFinding(CheckPermission(machine, devices, false, {"rxe0"}), Verdict::kOk,
                "rdma_cm, uverbs0 may be opened; not uverbs1", "");
  ExpectFinding(CheckPermission(machine, devices, false, {"rxe0", "rxe1"}), Verdict::kFailed, "write uverbs1",
                "chmod 666");
  machine.nodes[0].may_open = false;
  ExpectFinding(CheckPermission(machine, devices, false, {"rxe0"}), Verdict::kFailed, "write rdma_cm", "chmod 666");
  ExpectFinding(CheckPermission(machine, devices, true, {"rxe0"}), Verdict::kOk, "uverbs0 may be opened", "");
  machine.nodes = {{"rdma_cm", true}, {"uverbs0", false}};
  ExpectFinding(CheckPermission(machine, devices, false, {"rxe0"}), Verdict::kFailed, "write uverbs0", "chmod 666");
  machine.nodes = {{"rdma_cm", true}, {"uverbs1", true, "rxe1"}};
  ExpectFinding(CheckPermission(machine, devices, false, {"rxe0"}), Verdict::kFailed, "no file of rxe0", "--device");
}

TEST(MachineChecksTest, WhereNoDeviceIsNamedOneThatMayBeOpenedIsEnough) {
  MachineFacts machine = Healthy();
  machine.nodes = {{"rdma_cm", true}, {"uverbs0", true, "rxe0"}, {"uverbs1", false, "rxe1"}};
  ExpectFinding(CheckPermission(machine, Devices("siw")), Verdict::kWarning, "write uverbs1", "chmod 666");
  machine.nodes[0].may_open = false;
  ExpectFinding(CheckPermission(machine, Devices("siw")), Verdict::kFailed, "write rdma_cm, uverbs1", "chmod 666");
  ExpectFinding(CheckPermission(machine, Devices("rdma_rxe"), true), Verdict::kWarning, "write uverbs1", "chmod 666");
  machine.nodes[0].may_open = true;
  machine.nodes[1].may_open = false;
  ExpectFinding(CheckPermission(machine, Devices("siw")), Verdict::kFailed, "write uverbs0, uverbs1", "chmod 666");
  machine.nodes = {{"uverbs0", true, "rxe0"}, {"uverbs1", false, "rxe1"}};
  ExpectFinding(CheckPermission(machine, Devices("siw")), Verdict::kFailed, "rdma_cm is missing",
                "--device /dev/infiniband");
}

TEST(MachineChecksTest, AContainerWithHalfOfTheDeviceFilesLacksTheManager) {
  MachineFacts machine = Healthy();
  machine.nodes = {{"uverbs0", true}};
  ExpectFinding(CheckPermission(machine, Devices("siw")), Verdict::kFailed, "rdma_cm is missing",
                "--device /dev/infiniband");
  ExpectFinding(CheckPermission(machine, Devices("rdma_rxe"), true), Verdict::kOk, "uverbs0 may be opened", "");
}

TEST(MachineChecksTest, LockedMemoryMustHoldTheStoreAndItsBuffers) {
  MachineFacts machine = Healthy();
  machine.lock_limit = kStore + kLockedBuffers;
  ExpectFinding(CheckMemlock(machine, kStore), Verdict::kOk, "576 MiB", "");
  machine.lock_limit -= 1;
  ExpectFinding(CheckMemlock(machine, kStore), Verdict::kFailed, "need 576 MiB", "ulimit -l unlimited");
  machine.lock_limit_hard = machine.lock_limit;
  ExpectFinding(CheckMemlock(machine, kStore), Verdict::kFailed, "need 576 MiB", "LimitMEMLOCK=infinity");
  machine.locks_without_limit = true;
  ExpectFinding(CheckMemlock(machine, kStore), Verdict::kOk, "CAP_IPC_LOCK", "");
}

TEST(MachineChecksTest, AStoreLargerThanTheMachineIsRefusedWhateverMayBeLocked) {
  MachineFacts machine = Healthy();
  machine.locks_without_limit = true;
  machine.memory = kStore;
  EXPECT_EQ(CheckMemlock(machine, kStore).verdict, Verdict::kOk);
  ExpectFinding(CheckMemlock(machine, kStore + 1), Verdict::kFailed, "this machine has 512 MiB", "--memory");
}

TEST(MachineChecksTest, PeersAreCountedWhereTheyLockMemory) {
  MachineFacts machine = Healthy();
  machine.lock_limit = machine.lock_limit_hard = kStore + kLockedBuffers;
  ExpectFinding(CheckMemlock(machine, kStore, 1, 0), Verdict::kOk, "576 MiB", "");
  ExpectFinding(CheckMemlock(machine, kStore, 1, 1000), Verdict::kFailed, "buffers for 1000 peers need",
                "LimitMEMLOCK");
  machine.lock_limit = kStore + kLockedBuffers + 1000 * kLockedForIdlePeer;
  ExpectFinding(CheckMemlock(machine, kStore, 1, 1000), Verdict::kOk, "for 1000 peers", "");
}

TEST(MachineChecksTest, PeersTakeDescriptorsOnlyWhereTheyAreConnectedOverTcp) {
  MachineFacts machine = Healthy();
  machine.descriptor_limit_hard = 4096;
  ExpectFinding(CheckDescriptors(machine, 1000, false), Verdict::kOk, "with 1000 peers needs 256", "");
  ExpectFinding(CheckDescriptors(machine, 960, true), Verdict::kOk, "needs 4096 (--cm tcp: 4 for each)", "");
  ExpectFinding(CheckDescriptors(machine, 961, true), Verdict::kFailed, "at most 4096", "LimitNOFILE=4100");
  ExpectFinding(CheckDescriptors(machine, 961, true), Verdict::kFailed, "at most 4096", "leave --cm tcp out");
  ExpectFinding(CheckDescriptors(machine, 700, true, 2), Verdict::kFailed, "6 for each", "nofile=4456");
  machine.descriptor_limit_hard = kUnlimited;
  ExpectFinding(CheckDescriptors(machine, 65536, true), Verdict::kOk, "no limit", "");
  machine.descriptor_limit_hard = 0;
  ExpectFinding(CheckDescriptors(machine, 10, true), Verdict::kNotApplicable, "no limit known", "");
  machine.descriptor_limit_hard = 128;
  ExpectFinding(CheckDescriptors(machine, 1, false), Verdict::kFailed, "at most 128", "LimitNOFILE=256");
}

TEST(MachineChecksTest, AHardLimitThatIsOneIsAsFarAsItCanBeRaised) {
  MachineFacts machine = Healthy();
  machine.lock_limit = 8 << 20;
  machine.lock_limit_hard = uint64_t{1} << 30;
  ExpectFinding(CheckMemlock(machine, kStore), Verdict::kFailed, "need 576 MiB", "ulimit -l 1048576;");
}

TEST(MachineChecksTest, EachDeviceLocksTheStoreForItself) {
  MachineFacts machine = Healthy();
  machine.lock_limit = machine.lock_limit_hard = uint64_t{600} << 20;
  ExpectFinding(CheckMemlock(machine, kStore, 1), Verdict::kOk, "the store and its buffers need 576 MiB", "");
  ExpectFinding(CheckMemlock(machine, kStore, 2), Verdict::kFailed,
                "once for each of 2 devices, and its buffers need 1.1 GiB", "LimitMEMLOCK=infinity");
}

TEST(MachineChecksTest, AnUnlimitedLimitIsNoNumber) {
  const Finding finding = CheckMemlock(Healthy(), kStore);
  EXPECT_EQ(finding.verdict, Verdict::kOk);
  ASSERT_EQ(finding.numbers.size(), 1u);
  EXPECT_EQ(finding.numbers[0].first, "needed_bytes");
}

TEST(MachineChecksTest, HugePagesAreOptionalButTooFewAreAWarning) {
  MachineFacts machine = Healthy();
  ExpectFinding(CheckHugePages(machine, kStore), Verdict::kNotApplicable, "optional", "vm.nr_hugepages=256");
  machine.huge_pages = 300;
  machine.huge_pages_free = 255;
  ExpectFinding(CheckHugePages(machine, kStore), Verdict::kWarning, "255 of 300", "vm.nr_hugepages=256");
  machine.huge_pages_free = 256;
  ExpectFinding(CheckHugePages(machine, kStore), Verdict::kOk, "256 of 300", "");
  ExpectFinding(CheckHugePages(machine, kStore + 1), Verdict::kWarning, "needs 257", "vm.nr_hugepages=257");
  machine.huge_page_size = 0;
  ExpectFinding(CheckHugePages(machine, kStore), Verdict::kNotApplicable, "none", "");
}

TEST(MachineChecksTest, SoftRoceInANetworkNamespaceIsWarnedOf) {
  MachineFacts machine = Healthy();
  ExpectFinding(CheckNetwork(machine, Devices("rdma_rxe")), Verdict::kOk, "machine's own", "");
  machine.in_initial_network = false;
  ExpectFinding(CheckNetwork(machine, Devices("rdma_rxe")), Verdict::kWarning, "Soft-RoCE sends nothing",
                "--network host");
  ExpectFinding(CheckNetwork(machine, Devices("siw")), Verdict::kOk, "namespace of its own", "");
}

TEST(MachineChecksTest, UdpBuffersAreTwiceTheLimitAsTheKernelCounts) {
  MachineFacts machine = Healthy();
  ExpectFinding(CheckUdpBuffers(machine, kWanted), Verdict::kWarning, "416 KiB instead of 8 MiB",
                "net.core.rmem_max=8388608");
  machine.receive_buffer_limit = kWanted / 2;
  ExpectFinding(CheckUdpBuffers(machine, kWanted), Verdict::kOk, "8 MiB", "");
  machine.receive_buffer_limit.reset();
  ExpectFinding(CheckUdpBuffers(machine, kWanted), Verdict::kNotApplicable, "not shown", "");
  machine.exceeds_buffer_limit = true;
  ExpectFinding(CheckUdpBuffers(machine, kWanted), Verdict::kOk, "CAP_NET_ADMIN", "");
}

}  // namespace
}  // namespace tokamak::cli::doctor
