#include "lib/cli/doctor/machine_facts.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/os/memory_limits.h"

namespace tokamak::cli::doctor {

namespace {

constexpr int kNetAdmin = 12;  // bits of CapEff: capability.h
constexpr int kIpcLock = 14;

uint64_t ParseLimit(absl::string_view text) {
  uint64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? value : kUnlimited;
}

// "Max locked memory   8388608   8388608   bytes"
void ReadLimits(const SystemFiles& files, MachineFacts& facts) {
  const std::string limits = files.Read("/proc/self/limits").value_or("");
  for (absl::string_view line : absl::StrSplit(limits, '\n')) {
    const bool descriptors = absl::ConsumePrefix(&line, "Max open files");
    if (!descriptors && !absl::ConsumePrefix(&line, "Max locked memory")) continue;
    const std::vector<absl::string_view> values = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (values.size() < 2) continue;
    if (descriptors) {
      facts.descriptor_limit_hard = ParseLimit(values[1]);
    } else {
      facts.lock_limit = ParseLimit(values[0]);
      facts.lock_limit_hard = ParseLimit(values[1]);
    }
  }
}

void ReadCapabilities(const SystemFiles& files, MachineFacts& facts) {
  const std::string status = files.Read("/proc/self/status").value_or("");
  uint64_t effective = 0;
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::ConsumePrefix(&line, "CapEff:")) continue;
    if (!absl::SimpleHexAtoi(absl::StripAsciiWhitespace(line), &effective)) effective = 0;
  }
  // In a user namespace the kernel counts locked memory whatever the capabilities say.
  const std::string map = files.Read("/proc/self/uid_map").value_or("");
  const std::vector<absl::string_view> columns = absl::StrSplit(map, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  const bool everybody = columns.size() == 3 && columns[0] == "0" && columns[1] == "0" && columns[2] == "4294967295";
  facts.locks_without_limit = everybody && ((effective >> kIpcLock) & 1) != 0;
  facts.exceeds_buffer_limit = ((effective >> kNetAdmin) & 1) != 0;
}

void ReadMemory(const SystemFiles& files, MachineFacts& facts) {
  const std::string meminfo = files.Read("/proc/meminfo").value_or("");
  facts.memory = os::MeminfoValue(meminfo, "MemTotal").value_or(0) * 1024;
  facts.huge_page_size = os::MeminfoValue(meminfo, "Hugepagesize").value_or(0) * 1024;
  facts.huge_pages = os::MeminfoValue(meminfo, "HugePages_Total").value_or(0);
  const uint64_t free = os::MeminfoValue(meminfo, "HugePages_Free").value_or(0);
  const uint64_t promised = os::MeminfoValue(meminfo, "HugePages_Rsvd").value_or(0);
  facts.huge_pages_free = free > promised ? free - promised : 0;
}

void ReadModules(const SystemFiles& files, MachineFacts& facts) {
  // A driver that is built in has no folder in /sys/module, but the classes are there either way.
  facts.verbs_loaded = files.Exists("/sys/class/infiniband_verbs");
  facts.cm_loaded = files.Exists("/sys/class/misc/rdma_cm") || files.Exists("/sys/module/rdma_ucm");
  const std::string release = files.Read("/proc/sys/kernel/osrelease").value_or("");
  facts.has_soft_roce = files.Exists("/sys/module/rdma_rxe") ||
                        files.Exists(absl::StrCat("/lib/modules/", release, "/kernel/drivers/infiniband/sw/rxe"));
}

// The kernel module that drives a PCI card made for RDMA; empty for other cards.
std::string ModuleFor(absl::string_view vendor, absl::string_view pci_class) {
  const bool infiniband = absl::StartsWith(pci_class, "0x0207");
  const bool network = absl::StartsWith(pci_class, "0x02");
  if (vendor == "0x15b3" && network) return "mlx5_ib (mlx4_ib for ConnectX-3)";
  if (!infiniband) return "";
  if (vendor == "0x8086") return "hfi1";
  if (vendor == "0x1077") return "ib_qib";
  return "the driver of its vendor";
}

void ReadCards(const SystemFiles& files, MachineFacts& facts) {
  for (const std::string& slot : files.List("/sys/bus/pci/devices")) {
    const std::string folder = absl::StrCat("/sys/bus/pci/devices/", slot);
    const std::string module =
        ModuleFor(files.Read(folder + "/vendor").value_or(""), files.Read(folder + "/class").value_or(""));
    if (!module.empty()) facts.cards.push_back(absl::StrCat(module, " for ", slot));
  }
}

std::string FindContainer(const SystemFiles& files) {
  if (files.Exists("/.dockerenv")) return "a Docker container";
  if (files.Exists("/run/.containerenv")) return "a Podman container";
  if (files.Exists("/var/run/secrets/kubernetes.io")) return "a Kubernetes pod";
  const std::string groups = files.Read("/proc/self/cgroup").value_or("");
  for (const char* word : {"docker", "kubepods", "containerd", "libpod", "lxc"}) {
    if (absl::StrContains(groups, word)) return "a container";
  }
  return "";
}

}  // namespace

MachineFacts ReadMachine(const SystemFiles& files) {
  MachineFacts facts;
  ReadLimits(files, facts);
  ReadCapabilities(files, facts);
  ReadMemory(files, facts);
  ReadModules(files, facts);
  ReadCards(files, facts);
  for (const std::string& name : files.List("/dev/infiniband")) {
    if (!absl::StartsWith(name, "uverbs") && name != "rdma_cm") continue;
    facts.nodes.push_back({name, files.MayReadAndWrite(absl::StrCat("/dev/infiniband/", name)),
                           files.Read(absl::StrCat("/sys/class/infiniband_verbs/", name, "/ibdev")).value_or("")});
  }
  facts.container = FindContainer(files);
  // The kernel shows this setting, which is for the whole machine, in its first network namespace
  // only.
  facts.in_initial_network = files.Exists("/proc/sys/net/core/netdev_max_backlog");
  facts.receive_buffer_limit = files.ReadNumber("/proc/sys/net/core/rmem_max");
  return facts;
}

}  // namespace tokamak::cli::doctor
