#include "lib/cli/doctor/machine_checks.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/cli/doctor/expect_finding.h"

namespace tokamak::cli::doctor {
namespace {

constexpr uint64_t kStore = 512 << 20;

MachineCase Healthy() {
  MachineCase known;
  MachineFacts& machine = known.machine;
  machine.lock_limit = machine.lock_limit_hard = kUnlimited;
  machine.huge_page_size = 2 << 20;
  machine.verbs_loaded = machine.cm_loaded = true;
  machine.nodes = {{"rdma_cm", true}, {"uverbs0", true, "rxe0"}};
  machine.receive_buffer_limit = 212992;
  known.devices = {{"rxe0", "rdma_rxe", {}}};
  known.store = kStore;
  return known;
}

// One of two devices may be opened.
void ShutSecond(MachineCase& c) {
  c.machine.nodes = {{"rdma_cm", true}, {"uverbs0", true, "rxe0"}, {"uverbs1", false, "rxe1"}};
  c.devices.push_back({"rxe1", "rdma_rxe", {}});
}
void LimitLocked(MachineCase& c, uint64_t soft, uint64_t hard) {
  c.machine.lock_limit = soft;
  c.machine.lock_limit_hard = hard;
}
void PeersByTcp(MachineCase& c, uint32_t peers, uint64_t limit) {
  c.peers = peers;
  c.by_tcp = true;
  c.machine.descriptor_limit_hard = limit;
}

struct MachineRow {
  const char* check;
  std::function<void(MachineCase&)> change;  // of a healthy machine
  Verdict verdict;
  const char* seen;
  const char* advice;
};

constexpr auto kOk = Verdict::kOk, kWarning = Verdict::kWarning, kFailed = Verdict::kFailed,
               kNone = Verdict::kNotApplicable;
constexpr uint64_t kFull = kStore + kLockedBuffers;
using Case = MachineCase;

TEST(MachineChecksTest, EachFindingFollowsFromTheFacts) {
  const MachineRow rows[] = {
      {"modules", [](Case&) {}, kOk, "are loaded", ""},
      {"modules", [](Case& c) { c.machine.cm_loaded = false; }, kFailed, "rdma_ucm is not", "modprobe rdma_ucm"},
      {"modules", [](Case& c) { c.machine.cm_loaded = false, c.by_tcp = true; }, kOk, "nor does --cm tcp need it", ""},
      {"modules", [](Case& c) { c.machine.verbs_loaded = false; }, kFailed, "ib_uverbs is not",
       "modprobe -a ib_uverbs rdma_ucm"},

      {"devices", [](Case&) {}, kOk, "rxe0 (rdma_rxe)", ""},
      {"devices", [](Case& c) { c.devices.clear(); }, kFailed, "no RDMA device", "no rdma_rxe module"},
      {"devices", [](Case& c) { c.devices.clear(), c.machine.has_soft_roce = true; }, kFailed, "no RDMA device",
       "rdma link add rxe0 type rxe"},
      {"devices", [](Case& c) { c.devices.clear(), c.machine.cards = {"mlx5_ib for 0000:3b:00.0"}; }, kFailed,
       "no RDMA device", "modprobe mlx5_ib"},

      {"permission", [](Case&) {}, kOk, "rdma_cm, uverbs0 may be opened", ""},
      {"permission", [](Case& c) { c.machine.nodes.clear(), c.devices.clear(); }, kNone, "not there", ""},
      {"permission", [](Case& c) { c.machine.nodes.clear(), c.machine.container = "a Docker container"; }, kFailed,
       "a Docker container without /dev/infiniband", "--device /dev/infiniband"},
      {"permission", [](Case& c) { c.machine.nodes.clear(); }, kFailed, "not their files", "rdma-core"},
      {"permission", [](Case& c) { c.machine.nodes[1].may_open = false; }, kFailed, "write uverbs0",
       "chmod 666 /dev/infiniband/uverbs0"},
      {"permission", [](Case& c) { ShutSecond(c), c.named = {"rxe0"}; }, kOk,
       "rdma_cm, uverbs0 may be opened; not uverbs1", ""},
      {"permission",
       [](Case& c) {
         ShutSecond(c), c.named = {"rxe0", "rxe1"};
       },
       kFailed, "write uverbs1", "chmod 666"},
      {"permission", [](Case& c) { ShutSecond(c), c.named = {"rxe0"}, c.machine.nodes[0].may_open = false; }, kFailed,
       "write rdma_cm", "chmod 666"},
      {"permission",
       [](Case& c) { ShutSecond(c), c.named = {"rxe0"}, c.machine.nodes[0].may_open = false, c.by_tcp = true; }, kOk,
       "uverbs0 may be opened", ""},
      {"permission",
       [](Case& c) {
         c.named = {"rxe0"}, c.machine.nodes[1] = {"uverbs0", false};
       },
       kFailed, "write uverbs0", "chmod 666"},
      {"permission", [](Case& c) { c.named = {"rxe0"}, c.machine.nodes[1].device = "rxe1"; }, kFailed,
       "no file of rxe0", "--device"},
      {"permission", [](Case& c) { ShutSecond(c); }, kWarning, "write uverbs1", "chmod 666"},
      {"permission", [](Case& c) { ShutSecond(c), c.machine.nodes[0].may_open = false; }, kFailed,
       "write rdma_cm, uverbs1", "chmod 666"},
      {"permission", [](Case& c) { ShutSecond(c), c.machine.nodes[0].may_open = false, c.by_tcp = true; }, kWarning,
       "write uverbs1", "chmod 666"},
      {"permission", [](Case& c) { ShutSecond(c), c.machine.nodes[1].may_open = false; }, kFailed,
       "write uverbs0, uverbs1", "chmod 666"},
      {"permission", [](Case& c) { ShutSecond(c), c.machine.nodes.erase(c.machine.nodes.begin()); }, kFailed,
       "rdma_cm is missing", "--device /dev/infiniband"},
      {"permission", [](Case& c) { c.machine.nodes.erase(c.machine.nodes.begin()); }, kFailed, "rdma_cm is missing",
       "--device /dev/infiniband"},
      {"permission", [](Case& c) { c.machine.nodes.erase(c.machine.nodes.begin()), c.by_tcp = true; }, kOk,
       "uverbs0 may be opened", ""},

      {"memlock", [](Case& c) { LimitLocked(c, kFull, kFull); }, kOk, "the store and its buffers need 576 MiB", ""},
      {"memlock", [](Case& c) { LimitLocked(c, kFull - 1, kUnlimited); }, kFailed, "need 576 MiB",
       "ulimit -l unlimited"},
      {"memlock", [](Case& c) { LimitLocked(c, kFull - 1, uint64_t{1} << 30); }, kFailed, "", "ulimit -l 1048576;"},
      {"memlock", [](Case& c) { LimitLocked(c, kFull - 1, kFull - 1); }, kFailed, "need 576 MiB",
       "LimitMEMLOCK=infinity"},
      {"memlock", [](Case& c) { LimitLocked(c, 8 << 20, 8 << 20), c.machine.locks_without_limit = true; }, kOk,
       "CAP_IPC_LOCK", ""},
      {"memlock", [](Case& c) { c.machine.memory = kStore; }, kOk, "", ""},
      {"memlock", [](Case& c) { c.machine.memory = kStore - 1; }, kFailed, "this machine has 512 MiB", "--memory"},
      {"memlock", [](Case& c) { LimitLocked(c, kFull, kFull), c.peers = 1000; }, kFailed, "buffers for 1000 peers need",
       "LimitMEMLOCK"},
      {"memlock", [](Case& c) { LimitLocked(c, kFull + 1000 * kLockedForIdlePeer, kFull), c.peers = 1000; }, kOk,
       "for 1000 peers", ""},
      {"memlock",
       [](Case& c) {
         LimitLocked(c, kFull, kFull), c.named = {"rxe0", "rxe1"};
       },
       kFailed, "once for each of 2 devices, and its buffers need 1.1 GiB", "LimitMEMLOCK=infinity"},

      {"descriptors", [](Case& c) { PeersByTcp(c, 1000, 4096), c.by_tcp = false; }, kOk, "1000 peers needs 256", ""},
      {"descriptors", [](Case& c) { PeersByTcp(c, 960, 4096); }, kOk, "needs 4096 (--cm tcp: 4 for each)", ""},
      {"descriptors", [](Case& c) { PeersByTcp(c, 961, 4096); }, kFailed, "at most 4096", "LimitNOFILE=4100"},
      {"descriptors", [](Case& c) { PeersByTcp(c, 961, 4096); }, kFailed, "at most 4096", "leave --cm tcp out"},
      {"descriptors",
       [](Case& c) {
         PeersByTcp(c, 700, 4096), c.named = {"rxe0", "rxe1"};
       },
       kFailed, "6 for each", "nofile=4456"},
      {"descriptors", [](Case& c) { PeersByTcp(c, 65536, kUnlimited); }, kOk, "no limit", ""},
      {"descriptors", [](Case& c) { PeersByTcp(c, 10, 0); }, kNone, "no limit known", ""},

      {"huge pages", [](Case&) {}, kNone, "optional", "vm.nr_hugepages=256"},
      {"huge pages", [](Case& c) { c.machine.huge_pages = 300, c.machine.huge_pages_free = 255; }, kWarning,
       "255 of 300", "vm.nr_hugepages=256"},
      {"huge pages", [](Case& c) { c.machine.huge_pages = 300, c.machine.huge_pages_free = 256; }, kOk, "256 of 300",
       ""},
      {"huge pages", [](Case& c) { c.machine.huge_pages = c.machine.huge_pages_free = 256, c.store = kStore + 1; },
       kWarning, "needs 257", "vm.nr_hugepages=257"},
      {"huge pages", [](Case& c) { c.machine.huge_page_size = 0; }, kNone, "none", ""},

      {"network", [](Case&) {}, kOk, "machine's own", ""},
      {"network", [](Case& c) { c.machine.in_initial_network = false; }, kWarning, "Soft-RoCE sends nothing",
       "--network host"},
      {"network", [](Case& c) { c.machine.in_initial_network = false, c.devices[0].driver = "siw"; }, kOk,
       "namespace of its own", ""},

      {"many devices", [](Case& c) { c.devices.resize(kMaxDevices + 1); }, kWarning, "first 16", "--device"},

      {"udp buffers", [](Case& c) { c.soft = 1; }, kWarning, "416 KiB instead of 8 MiB", "net.core.rmem_max=8388608"},
      {"udp buffers", [](Case& c) { c.soft = 1, c.machine.receive_buffer_limit = 4 << 20; }, kOk, "8 MiB", ""},
      {"udp buffers", [](Case& c) { c.soft = 1, c.machine.receive_buffer_limit.reset(); }, kNone, "not shown", ""},
      {"udp buffers", [](Case& c) { c.soft = 1, c.machine.exceeds_buffer_limit = true; }, kOk, "CAP_NET_ADMIN", ""},
  };
  for (const MachineRow& row : rows) {
    MachineCase known = Healthy();
    row.change(known);
    ExpectFinding(CheckMachine(known), row.check, row.verdict, row.seen, row.advice);
  }
}

TEST(MachineChecksTest, OnlyChecksThatConcernTheCaseAreMade) {
  MachineCase known = Healthy();
  EXPECT_EQ(NamesOf(CheckMachine(known)), "modules devices permission memlock huge pages network");
  known.soft = 1;
  EXPECT_EQ(NamesOf(CheckMachine(known)), "huge pages udp buffers");
  known.named = {"rxe0"};
  known.peers = 2;
  EXPECT_EQ(NamesOf(CheckMachine(known)),
            "modules devices permission memlock descriptors huge pages network udp buffers");
}

TEST(MachineChecksTest, AnUnlimitedLimitIsNoNumber) {
  const Finding finding = FindingOf(CheckMachine(Healthy()), "memlock");
  ASSERT_EQ(finding.numbers.size(), 1u);
  EXPECT_EQ(finding.numbers[0].first, "needed_bytes");
}

}  // namespace
}  // namespace tokamak::cli::doctor
