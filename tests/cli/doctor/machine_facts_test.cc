#include "lib/cli/doctor/machine_facts.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/cli/doctor/fake_machine.h"

namespace tokamak::cli::doctor {
namespace {

using Machine = FakeMachine;
using Facts = MachineFacts;

struct FactsRow {
  const char* what;
  std::function<void(Machine&)> change;  // of a healthy machine
  bool (*holds)(const Facts&);
};

TEST(MachineFactsTest, EachFactIsReadFromItsFile) {
  const FactsRow rows[] = {
      {"both limits on locked memory", [](Machine& m) { m.PutLockLimit("8388608", "unlimited"); },
       [](const Facts& f) { return f.lock_limit == 8388608 && f.lock_limit_hard == kUnlimited; }},
      {"the hard limit of descriptors", [](Machine&) {},
       [](const Facts& f) { return f.descriptor_limit_hard == 20000; }},
      {"no limits shown", [](Machine& m) { m.Put("/proc/self/limits", ""); },
       [](const Facts& f) { return f.descriptor_limit_hard == 0 && f.lock_limit == 0; }},
      {"no capabilities", [](Machine&) {},
       [](const Facts& f) { return !f.locks_without_limit && !f.exceeds_buffer_limit; }},
      {"CAP_IPC_LOCK", [](Machine& m) { m.Put("/proc/self/status", "CapEff:\t0000000000004000"); },
       [](const Facts& f) { return f.locks_without_limit && !f.exceeds_buffer_limit; }},
      {"CAP_IPC_LOCK in a user namespace",
       [](Machine& m) {
         m.Put("/proc/self/status", "CapEff:\t000001ffffffffff");
         m.Put("/proc/self/uid_map", "         0       1000          1");
       },
       [](const Facts& f) { return !f.locks_without_limit; }},
      {"CAP_NET_ADMIN", [](Machine& m) { m.Put("/proc/self/status", "CapEff:\t0000000000001000"); },
       [](const Facts& f) { return f.exceeds_buffer_limit && !f.locks_without_limit; }},
      {"promised huge pages are not free",
       [](Machine& m) {
         m.Put("/proc/meminfo", "HugePages_Total: 100\nHugePages_Free: 90\nHugePages_Rsvd: 30\nHugepagesize: 2048 kB");
       },
       [](const Facts& f) {
         return f.huge_pages == 100 && f.huge_pages_free == 60 && f.huge_page_size == 2048 * 1024;
       }},
      {"modules that are loaded", [](Machine&) {}, [](const Facts& f) { return f.verbs_loaded && f.cm_loaded; }},
      {"no rdma_ucm", [](Machine& m) { m.Remove("/sys/class/misc"); },
       [](const Facts& f) { return f.verbs_loaded && !f.cm_loaded; }},
      {"no ib_uverbs", [](Machine& m) { m.Remove("/sys/class/infiniband_verbs"); },
       [](const Facts& f) { return !f.verbs_loaded; }},
      {"Soft-RoCE of another kernel",
       [](Machine& m) { m.Put("/lib/modules/5.10.0/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko", ""); },
       [](const Facts& f) { return !f.has_soft_roce; }},
      {"Soft-RoCE of this kernel",
       [](Machine& m) { m.Put("/lib/modules/6.1.0-56-amd64/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko", ""); },
       [](const Facts& f) { return f.has_soft_roce; }},
      {"files of verbs and of the manager alone",
       [](Machine& m) {
         m.Put("/dev/infiniband/uverbs0", "");
         m.Put("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_2");
         m.Put("/dev/infiniband/umad0", "");
       },
       [](const Facts& f) {
         return f.nodes.size() == 2 && f.nodes[0].name == "rdma_cm" && f.nodes[0].device.empty() &&
                f.nodes[1].name == "uverbs0" && f.nodes[1].may_open && f.nodes[1].device == "mlx5_2";
       }},
      {"cards by vendor and class, plain Ethernet not",
       [](Machine& m) {
         m.Put("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x15b3");
         m.Put("/sys/bus/pci/devices/0000:3b:00.0/class", "0x020000");
         m.Put("/sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086");
         m.Put("/sys/bus/pci/devices/0000:00:1f.0/class", "0x020000");
       },
       [](const Facts& f) {
         return f.cards == std::vector<std::string>{"mlx5_ib (mlx4_ib for ConnectX-3) for 0000:3b:00.0"};
       }},
      {"no container", [](Machine&) {}, [](const Facts& f) { return f.container.empty(); }},
      {"a container's control group",
       [](Machine& m) { m.Put("/proc/self/cgroup", "0::/system.slice/docker-0123.scope"); },
       [](const Facts& f) { return f.container == "a container"; }},
      {"Docker's mark", [](Machine& m) { m.Put("/.dockerenv", ""); },
       [](const Facts& f) { return f.container == "a Docker container"; }},
      {"the first network namespace", [](Machine&) {},
       [](const Facts& f) { return f.in_initial_network && f.receive_buffer_limit == 16777216; }},
      {"another network namespace", [](Machine& m) { m.Remove("/proc/sys/net/core"); },
       [](const Facts& f) { return !f.in_initial_network && !f.receive_buffer_limit.has_value(); }},
      {"nothing at all", [](Machine& m) { m.Remove("/proc"), m.Remove("/sys"), m.Remove("/dev"); },
       [](const Facts& f) { return !f.verbs_loaded && f.lock_limit == 0 && f.nodes.empty(); }},
  };
  for (const FactsRow& row : rows) {
    Machine machine;
    machine.BeHealthy();
    row.change(machine);
    EXPECT_TRUE(row.holds(ReadMachine(machine.files()))) << row.what;
  }
}

}  // namespace
}  // namespace tokamak::cli::doctor
