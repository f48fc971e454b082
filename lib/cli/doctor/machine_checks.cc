#include "lib/cli/doctor/machine_checks.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/units.h"

namespace tokamak::cli::doctor {

namespace {

using base::FormatSize;

constexpr char kSoftwareNic[] = "--device soft:udp@IP needs no RDMA device";

std::string WithoutAnyDevice(const MachineFacts& machine) {
  if (!machine.cards.empty()) {
    return absl::StrCat("load the driver: modprobe ", absl::StrJoin(machine.cards, ", "), "; or ", kSoftwareNic);
  }
  if (machine.has_soft_roce) {
    return absl::StrCat("for Soft-RoCE: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0; or ", kSoftwareNic);
  }
  return absl::StrCat(kSoftwareNic, "; this kernel has no rdma_rxe module for Soft-RoCE");
}

}  // namespace

Finding CheckModules(const MachineFacts& machine, bool by_tcp) {
  if (!machine.verbs_loaded) {
    return Failed("modules", "the kernel's ib_uverbs is not loaded: programs cannot reach any RDMA device",
                  "modprobe -a ib_uverbs rdma_ucm (on the host, where this is a container)");
  }
  if (!machine.cm_loaded && by_tcp) {
    return Ok("modules", "ib_uverbs is loaded; rdma_ucm is not, nor does --cm tcp need it");
  }
  if (!machine.cm_loaded) {
    return Failed("modules", "ib_uverbs is loaded, rdma_ucm is not: connections by IP address cannot be made",
                  "modprobe rdma_ucm (on the host, where this is a container); or --cm tcp, which does without");
  }
  return Ok("modules", "ib_uverbs and rdma_ucm are loaded");
}

Finding CheckDevices(const MachineFacts& machine, const std::vector<RdmaFacts>& devices) {
  if (devices.empty()) return Failed("devices", "the kernel has no RDMA device", WithoutAnyDevice(machine));
  std::vector<std::string> names;
  for (const RdmaFacts& device : devices) {
    names.push_back(device.driver.empty() ? device.name : absl::StrCat(device.name, " (", device.driver, ")"));
  }
  return Ok("devices", absl::StrJoin(names, ", "));
}

Finding CheckPermission(const MachineFacts& machine, const std::vector<RdmaFacts>& devices, bool by_tcp,
                        const std::vector<std::string>& named) {
  if (machine.nodes.empty()) {
    if (devices.empty()) return NotApplicable("permission", "/dev/infiniband is not there, nor is a device");
    if (!machine.container.empty()) {
      return Failed("permission", absl::StrCat("this is ", machine.container, " without /dev/infiniband"),
                    "docker run --device /dev/infiniband --network host --ulimit memlock=-1");
    }
    return Failed("permission", "there are devices, but not their files in /dev/infiniband",
                  "apt-get install rdma-core, whose udev rules make them; in a container: --device /dev/infiniband");
  }
  const auto wanted = [&named](const DeviceNode& node) {
    return named.empty() || node.device.empty() || std::count(named.begin(), named.end(), node.device) > 0;
  };
  std::vector<std::string> open, shut, unwanted;
  for (const DeviceNode& node : machine.nodes) {
    if (by_tcp && node.name == "rdma_cm") continue;
    (node.may_open ? open : wanted(node) ? shut : unwanted).push_back(node.name);
  }
  const auto has_file = [&machine](const std::string& device) {
    return std::any_of(machine.nodes.begin(), machine.nodes.end(), [&device](const DeviceNode& node) {
      return node.device == device || (node.device.empty() && node.name != "rdma_cm");
    });
  };
  for (const RdmaFacts& device : devices) {
    if (std::count(named.begin(), named.end(), device.name) == 0 || has_file(device.name)) continue;
    return Failed("permission", absl::StrCat("/dev/infiniband has no file of ", device.name),
                  "in a container give all of it: --device /dev/infiniband; else apt-get install rdma-core");
  }
  const size_t has_cm = static_cast<size_t>(std::count(open.begin(), open.end(), "rdma_cm"));
  const bool may_use_cm = std::count(shut.begin(), shut.end(), "rdma_cm") == 0;
  const bool one_is_enough = named.empty() && open.size() > has_cm && may_use_cm;
  const auto no_right = [&shut](const auto& verdict) {
    return verdict("permission",
                   absl::StrCat("/dev/infiniband: no right to read and write ", absl::StrJoin(shut, ", ")),
                   absl::StrCat("chmod 666 /dev/infiniband/", shut.front(),
                                ", or a udev rule; rdma-core's gives uverbs* and rdma_cm to everybody"));
  };
  if (!shut.empty() && !one_is_enough) return no_right(Failed);
  if (machine.cm_loaded && has_cm == 0 && !by_tcp) {
    return Failed("permission", "/dev/infiniband/rdma_cm is missing: connections by IP address cannot be made",
                  "in a container give all of it: --device /dev/infiniband");
  }
  if (!shut.empty()) return no_right(Warning);
  const std::string where = machine.container.empty() ? "" : absl::StrCat(" (in ", machine.container, ")");
  const std::string rest =
      unwanted.empty() ? "" : absl::StrCat("; not ", absl::StrJoin(unwanted, ", "), ", which no named device needs");
  return Ok("permission", absl::StrCat("/dev/infiniband: ", absl::StrJoin(open, ", "), " may be opened", where, rest));
}

Finding CheckMemlock(const MachineFacts& machine, uint64_t store, size_t devices, uint32_t peers) {
  const uint64_t needed = devices * store + kLockedBuffers + peers * kLockedForIdlePeer;
  const std::string need = absl::StrCat(
      "the store", devices > 1 ? absl::StrCat(", once for each of ", devices, " devices,") : "", " and its buffers",
      peers > 0 ? absl::StrCat(" for ", peers, " peers") : "", " need ", FormatSize(needed));
  const bool unlimited = machine.lock_limit == kUnlimited;
  const std::string limit = unlimited ? "no limit" : FormatSize(machine.lock_limit);
  Finding finding;
  if (machine.memory != 0 && store > machine.memory) {
    finding = Failed("memlock", absl::StrCat("this machine has ", FormatSize(machine.memory), "; ", need),
                     "a smaller tokd --memory");
  } else if (machine.locks_without_limit && !unlimited) {
    finding = Ok("memlock", absl::StrCat("this process may lock any amount (CAP_IPC_LOCK); others: ", limit));
  } else if (unlimited || machine.lock_limit >= needed) {
    finding = Ok("memlock", absl::StrCat(limit, " on locked memory; ", need));
  } else {
    const std::string how = machine.lock_limit_hard >= needed
                                ? absl::StrCat("ulimit -l ", machine.lock_limit_hard == kUnlimited
                                                                 ? "unlimited"
                                                                 : absl::StrCat(machine.lock_limit_hard / 1024))
                                : "memlock unlimited in /etc/security/limits.conf (LimitMEMLOCK=infinity for systemd)";
    finding = Failed("memlock", absl::StrCat(limit, " may be locked; ", need),
                     absl::StrCat(how, "; docker: --ulimit memlock=-1; or a smaller tokd --memory"));
  }
  finding.numbers.emplace_back("needed_bytes", static_cast<double>(needed));
  if (!unlimited) finding.numbers.emplace_back("limit_bytes", static_cast<double>(machine.lock_limit));
  return finding;
}

Finding CheckDescriptors(const MachineFacts& machine, uint32_t peers, bool by_tcp, size_t devices) {
  const uint64_t each = by_tcp ? 2 + 2 * devices : 0;
  const uint64_t needed = kOwnDescriptors + peers * each;
  const std::string need = absl::StrCat("tokd with ", peers, " peers needs ", needed,
                                        by_tcp ? absl::StrCat(" (--cm tcp: ", each, " for each)") : "");
  if (machine.descriptor_limit_hard == 0) return NotApplicable("descriptors", absl::StrCat("no limit known; ", need));
  const bool unlimited = machine.descriptor_limit_hard == kUnlimited;
  const std::string limit = unlimited ? "no limit" : absl::StrCat("at most ", machine.descriptor_limit_hard);
  Finding finding = Ok("descriptors", absl::StrCat(limit, " descriptors; ", need));
  if (!unlimited && machine.descriptor_limit_hard < needed) {
    finding = Failed(
        "descriptors", finding.seen,
        absl::StrCat("nofile ", needed, " in /etc/security/limits.conf (LimitNOFILE=", needed,
                     " for systemd); docker: --ulimit nofile=", needed, by_tcp ? "; or leave --cm tcp out" : ""));
  }
  finding.numbers.emplace_back("needed", static_cast<double>(needed));
  if (!unlimited) finding.numbers.emplace_back("limit", static_cast<double>(machine.descriptor_limit_hard));
  return finding;
}

Finding CheckHugePages(const MachineFacts& machine, uint64_t store) {
  if (machine.huge_page_size == 0) return NotApplicable("huge pages", "this kernel has none; they are optional");
  const uint64_t needed = (store + machine.huge_page_size - 1) / machine.huge_page_size;
  const std::string reserve = absl::StrCat("sysctl vm.nr_hugepages=", needed, ", before tokd starts");
  if (machine.huge_pages == 0) {
    return NotApplicable("huge pages", "none reserved; optional, tokd takes them where there are enough", reserve);
  }
  const std::string seen = absl::StrCat(machine.huge_pages_free, " of ", machine.huge_pages, " huge pages of ",
                                        FormatSize(machine.huge_page_size), " are free; the store needs ", needed);
  if (machine.huge_pages_free < needed) {
    return Warning("huge pages", absl::StrCat(seen, ", so it is kept in ordinary ones"), reserve);
  }
  return Ok("huge pages", seen);
}

Finding CheckNetwork(const MachineFacts& machine, const std::vector<RdmaFacts>& devices) {
  if (machine.in_initial_network) return Ok("network", "this is the machine's own network namespace");
  const bool soft_roce =
      std::any_of(devices.begin(), devices.end(), [](const RdmaFacts& d) { return d.driver == "rdma_rxe"; });
  if (!soft_roce) return Ok("network", "a network namespace of its own (a container's, say)");
  return Warning("network",
                 "a network namespace of its own, where many kernels' Soft-RoCE sends nothing and says nothing",
                 "docker run --network host; siw and soft:udp work in any network namespace");
}

Finding CheckUdpBuffers(const MachineFacts& machine, uint64_t wanted) {
  if (machine.exceeds_buffer_limit) {
    return Ok("udp buffers",
              absl::StrCat("a receive buffer of ", FormatSize(wanted), " whatever the limit (CAP_NET_ADMIN)"));
  }
  if (!machine.receive_buffer_limit.has_value()) {
    return NotApplicable("udp buffers", "net.core.rmem_max is not shown in this network namespace");
  }
  // The kernel counts twice what was asked for, as room for its own overhead.
  const uint64_t given = 2 * std::min(*machine.receive_buffer_limit, wanted);
  if (given >= wanted) return Ok("udp buffers", absl::StrCat("a receive buffer of ", FormatSize(given)));
  return Warning("udp buffers",
                 absl::StrCat("a receive buffer of ", FormatSize(given), " instead of ", FormatSize(wanted),
                              ": fewer READs are in flight"),
                 absl::StrCat("sysctl net.core.rmem_max=", wanted));
}

}  // namespace tokamak::cli::doctor
