#include "lib/cli/doctor/machine_checks.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/units.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::cli::doctor {

namespace {

using absl::StrCat;
using base::FormatSize;

constexpr char kSoftwareNic[] = "--device soft:udp@IP needs no RDMA device";
constexpr char kGiveAll[] = "in a container give all of it: --device /dev/infiniband";

// Are the kernel's doors to verbs and to rdma_cm there?
Finding CheckModules(const MachineCase& known) {
  const MachineFacts& machine = known.machine;
  return FirstOf({
      {!machine.verbs_loaded, Failed("the kernel's ib_uverbs is not loaded: programs cannot reach any RDMA device",
                                     "modprobe -a ib_uverbs rdma_ucm (on the host, where this is a container)")},
      {!machine.cm_loaded && known.by_tcp, Ok("ib_uverbs is loaded; rdma_ucm is not, nor does --cm tcp need it")},
      {!machine.cm_loaded,
       Failed("ib_uverbs is loaded, rdma_ucm is not: connections by IP address cannot be made",
              "modprobe rdma_ucm (on the host, where this is a container); or --cm tcp, which does without")},
      {true, Ok("ib_uverbs and rdma_ucm are loaded")},
  });
}

// Is there any RDMA device? If not: what could this machine have?
Finding CheckDevices(const MachineCase& known) {
  constexpr char kNone[] = "the kernel has no RDMA device";
  const auto name = [](std::string* out, const RdmaFacts& device) {
    absl::StrAppend(out, device.name, device.driver.empty() ? "" : StrCat(" (", device.driver, ")"));
  };
  return FirstOf({
      {!known.devices.empty(), Ok(absl::StrJoin(known.devices, ", ", name))},
      {!known.machine.cards.empty(),
       Failed(kNone,
              StrCat("load the driver: modprobe ", absl::StrJoin(known.machine.cards, ", "), "; or ", kSoftwareNic))},
      {known.machine.has_soft_roce,
       Failed(kNone,
              StrCat("for Soft-RoCE: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0; or ", kSoftwareNic))},
      {true, Failed(kNone, StrCat(kSoftwareNic, "; this kernel has no rdma_rxe module for Soft-RoCE"))},
  });
}

// May /dev/infiniband be opened? The files of all named devices must; if none is named, one is
// enough. The others are mentioned.
Finding CheckPermission(const MachineCase& known) {
  const std::vector<DeviceNode>& nodes = known.machine.nodes;
  const std::vector<std::string>& named = known.named;
  const auto is_named = [&](const std::string& device) { return std::count(named.begin(), named.end(), device) > 0; };
  std::vector<std::string> open, shut, unwanted;
  for (const DeviceNode& node : nodes) {
    if (known.by_tcp && node.name == "rdma_cm") continue;
    const bool wanted = named.empty() || node.device.empty() || is_named(node.device);
    (node.may_open ? open : wanted ? shut : unwanted).push_back(node.name);
  }
  const auto missing = std::find_if(known.devices.begin(), known.devices.end(), [&](const RdmaFacts& device) {
    return is_named(device.name) && std::none_of(nodes.begin(), nodes.end(), [&](const DeviceNode& node) {
             return node.device == device.name || (node.device.empty() && node.name != "rdma_cm");
           });
  });
  const bool lacks_file = missing != known.devices.end();
  const bool has_cm = std::count(open.begin(), open.end(), "rdma_cm") > 0;
  const bool may_use_cm = std::count(shut.begin(), shut.end(), "rdma_cm") == 0;
  const bool one_is_enough = named.empty() && open.size() > (has_cm ? 1u : 0u) && may_use_cm;
  const std::string no_right = StrCat("/dev/infiniband: no right to read and write ", absl::StrJoin(shut, ", "));
  const std::string give_right = StrCat("chmod 666 /dev/infiniband/", shut.empty() ? "" : shut.front(),
                                        ", or a udev rule; rdma-core's gives uverbs* and rdma_cm to everybody");
  const std::string& container = known.machine.container;
  return FirstOf({
      {nodes.empty() && known.devices.empty(), NotApplicable("/dev/infiniband is not there, nor is a device")},
      {nodes.empty() && !container.empty(),
       Failed(StrCat("this is ", container, " without /dev/infiniband"),
              "docker run --device /dev/infiniband --network host --ulimit memlock=-1")},
      {nodes.empty(), Failed("there are devices, but not their files in /dev/infiniband",
                             "apt-get install rdma-core, whose udev rules make them; in a container: --device "
                             "/dev/infiniband")},
      {lacks_file, Failed(StrCat("/dev/infiniband has no file of ", lacks_file ? missing->name : ""),
                          StrCat(kGiveAll, "; else apt-get install rdma-core"))},
      {!shut.empty() && !one_is_enough, Failed(no_right, give_right)},
      {known.machine.cm_loaded && !has_cm && !known.by_tcp,
       Failed("/dev/infiniband/rdma_cm is missing: connections by IP address cannot be made", kGiveAll)},
      {!shut.empty(), Warning(no_right, give_right)},
      {true,
       Ok(StrCat(
           "/dev/infiniband: ", absl::StrJoin(open, ", "), " may be opened",
           container.empty() ? "" : StrCat(" (in ", container, ")"),
           unwanted.empty() ? "" : StrCat("; not ", absl::StrJoin(unwanted, ", "), ", which no named device needs")))},
  });
}

// May the store be locked, as registering it does? The kernel counts it for each device that it is
// registered with. And may the buffers of the peers?
Finding CheckMemlock(const MachineCase& known) {
  const MachineFacts& machine = known.machine;
  const size_t devices = std::max<size_t>(known.named.size(), 1);
  const uint64_t needed = devices * known.store + kLockedBuffers + known.peers * kLockedForIdlePeer;
  const std::string need =
      StrCat("the store", devices > 1 ? StrCat(", once for each of ", devices, " devices,") : "", " and its buffers",
             known.peers > 0 ? StrCat(" for ", known.peers, " peers") : "", " need ", FormatSize(needed));
  const bool unlimited = machine.lock_limit == kUnlimited;
  const std::string limit = unlimited ? "no limit" : FormatSize(machine.lock_limit);
  const uint64_t hard = machine.lock_limit_hard;
  const std::string raise = hard < needed
                                ? "memlock unlimited in /etc/security/limits.conf (LimitMEMLOCK=infinity for systemd)"
                                : StrCat("ulimit -l ", hard == kUnlimited ? "unlimited" : StrCat(hard / 1024));
  Finding finding = FirstOf({
      {machine.memory != 0 && known.store > machine.memory,
       Failed(StrCat("this machine has ", FormatSize(machine.memory), "; ", need), "a smaller tokd --memory")},
      {machine.locks_without_limit && !unlimited,
       Ok(StrCat("this process may lock any amount (CAP_IPC_LOCK); others: ", limit))},
      {machine.lock_limit >= needed, Ok(StrCat(limit, " on locked memory; ", need))},
      {true, Failed(StrCat(limit, " may be locked; ", need),
                    StrCat(raise, "; docker: --ulimit memlock=-1; or a smaller tokd --memory"))},
  });
  finding.numbers.emplace_back("needed_bytes", static_cast<double>(needed));
  if (!unlimited) finding.numbers.emplace_back("limit_bytes", static_cast<double>(machine.lock_limit));
  return finding;
}

// May tokd have the descriptors that this many peers take, connected both ways? Connections take
// none, except with --cm tcp, where each queue pair of each device keeps a TCP connection.
Finding CheckDescriptors(const MachineCase& known) {
  const uint64_t each = known.by_tcp ? 2 + 2 * std::max<size_t>(known.named.size(), 1) : 0;
  const uint64_t needed = kOwnDescriptors + known.peers * each;
  const uint64_t most = known.machine.descriptor_limit_hard;
  const std::string need = StrCat("tokd with ", known.peers, " peers needs ", needed,
                                  each > 0 ? StrCat(" (--cm tcp: ", each, " for each)") : "");
  const std::string seen = StrCat(most == kUnlimited ? "no limit" : StrCat("at most ", most), " descriptors; ", need);
  Finding finding = FirstOf({
      {most == 0, NotApplicable(StrCat("no limit known; ", need))},
      {most < needed, Failed(seen, StrCat("nofile ", needed, " in /etc/security/limits.conf (LimitNOFILE=", needed,
                                          " for systemd); docker: --ulimit nofile=", needed,
                                          known.by_tcp ? "; or leave --cm tcp out" : ""))},
      {true, Ok(seen)},
  });
  finding.numbers.emplace_back("needed", static_cast<double>(needed));
  if (most != kUnlimited && most != 0) finding.numbers.emplace_back("limit", static_cast<double>(most));
  return finding;
}

Finding CheckHugePages(const MachineCase& known) {
  const MachineFacts& machine = known.machine;
  const uint64_t size = std::max<uint64_t>(machine.huge_page_size, 1);
  const uint64_t needed = (known.store + size - 1) / size;
  const std::string reserve = StrCat("sysctl vm.nr_hugepages=", needed, ", before tokd starts");
  const std::string seen = StrCat(machine.huge_pages_free, " of ", machine.huge_pages, " huge pages of ",
                                  FormatSize(size), " are free; the store needs ", needed);
  return FirstOf({
      {machine.huge_page_size == 0, NotApplicable("this kernel has none; they are optional")},
      {machine.huge_pages == 0,
       NotApplicable("none reserved; optional, tokd takes them where there are enough", reserve)},
      {machine.huge_pages_free < needed, Warning(StrCat(seen, ", so it is kept in ordinary ones"), reserve)},
      {true, Ok(seen)},
  });
}

// Rxe devices outside of the first network namespace look healthy and swallow everything.
Finding CheckNetwork(const MachineCase& known) {
  const bool soft_roce = std::any_of(known.devices.begin(), known.devices.end(),
                                     [](const RdmaFacts& device) { return device.driver == "rdma_rxe"; });
  return FirstOf({
      {known.machine.in_initial_network, Ok("this is the machine's own network namespace")},
      {soft_roce,
       Warning("a network namespace of its own, where many kernels' Soft-RoCE sends nothing and says nothing",
               "docker run --network host; siw and soft:udp work in any network namespace")},
      {true, Ok("a network namespace of its own (a container's, say)")},
  });
}

Finding CheckDeviceCount(const MachineCase&) {
  return Warning(StrCat("only the first ", kMaxDevices, " are examined"), "name the others with --device");
}

// Does a software NIC's UDP socket get the buffer that it asks for? The kernel counts twice the
// limit, as room for its own overhead.
Finding CheckUdpBuffers(const MachineCase& known) {
  const uint64_t wanted = verbs::soft::UdpSocketOptions().receive_buffer;
  const uint64_t given = 2 * std::min(known.machine.receive_buffer_limit.value_or(0), wanted);
  return FirstOf({
      {known.machine.exceeds_buffer_limit,
       Ok(StrCat("a receive buffer of ", FormatSize(wanted), " whatever the limit (CAP_NET_ADMIN)"))},
      {!known.machine.receive_buffer_limit.has_value(),
       NotApplicable("net.core.rmem_max is not shown in this network namespace")},
      {given >= wanted, Ok(StrCat("a receive buffer of ", FormatSize(given)))},
      {true, Warning(StrCat("a receive buffer of ", FormatSize(given), " instead of ", FormatSize(wanted),
                            ": fewer READs are in flight"),
                     StrCat("sysctl net.core.rmem_max=", wanted))},
  });
}

bool Always(const MachineCase&) { return true; }
bool HasRdma(const MachineCase& known) { return known.rdma(); }
bool HasPeers(const MachineCase& known) { return known.peers > 0; }
bool HasSoft(const MachineCase& known) { return known.soft > 0; }
bool HasMany(const MachineCase& known) {
  return known.soft == 0 && known.named.empty() && known.devices.size() > kMaxDevices;
}

constexpr Check<MachineCase> kChecks[] = {
    {"modules", HasRdma, CheckModules},          {"devices", HasRdma, CheckDevices},
    {"permission", HasRdma, CheckPermission},    {"memlock", HasRdma, CheckMemlock},
    {"descriptors", HasPeers, CheckDescriptors}, {"huge pages", Always, CheckHugePages},
    {"network", HasRdma, CheckNetwork},          {"many devices", HasMany, CheckDeviceCount},
    {"udp buffers", HasSoft, CheckUdpBuffers},
};

}  // namespace

std::vector<Finding> CheckMachine(const MachineCase& known) { return RunChecks(kChecks, known); }

}  // namespace tokamak::cli::doctor
