#include "tests/faults/wire.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/log.h"
#include "tests/faults/command.h"
#include "tests/faults/netem_limit.h"

namespace tokamak::faults {

namespace fs = std::filesystem;

absl::StatusOr<std::string> NetDeviceOf(const std::string& rdma_device) {
  // "link rxe0/1 state ACTIVE physical_state LINK_UP netdev v0"
  const auto link = Output({"rdma", "link", "show", absl::StrCat(rdma_device, "/1")});
  if (!link.ok()) return link.status();
  const std::vector<std::string> words = absl::StrSplit(*link, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  const auto name = std::find(words.begin(), words.end(), "netdev");
  if (name == words.end() || name + 1 == words.end()) {
    return absl::NotFoundError(absl::StrCat(rdma_device, " has no net device"));
  }
  return *(name + 1);
}

absl::Status CheckVirtual(const std::string& net_device) {
  std::error_code error;
  const std::string where = fs::read_symlink("/sys/class/net/" + net_device, error).string();
  if (absl::StrContains(where, "/virtual/net/")) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(net_device, " is no virtual net device: it is left alone"));
}

absl::StatusOr<std::unique_ptr<Cable>> Cable::Lay(const std::string& type, const End& one, const End& other) {
  auto cable = std::unique_ptr<Cable>(new Cable);
  if (absl::Status s = Run({"ip", "link", "add", one.net_device, "type", "veth", "peer", "name", other.net_device});
      !s.ok()) {
    return s;
  }
  cable->net_device_ = one.net_device;
  for (const End* end : {&one, &other}) {
    const std::vector<std::vector<std::string>> steps = {
        {"ip", "address", "add", end->address, "dev", end->net_device},
        {"ip", "link", "set", end->net_device, "mtu", "9000", "up"},
        {"rdma", "link", "add", end->rdma_device, "type", type, "netdev", end->net_device}};
    for (const std::vector<std::string>& step : steps) {
      if (absl::Status s = Run(step); !s.ok()) return s;
    }
    cable->rdma_devices_.push_back(end->rdma_device);
  }
  return cable;
}

Cable::~Cable() {
  for (const std::string& device : rdma_devices_) {
    const absl::Status status = Run({"rdma", "link", "delete", device});
    LOG_IF(ERROR, !status.ok()) << status;
  }
  if (net_device_.empty()) return;
  const absl::Status status = Run({"ip", "link", "delete", net_device_});
  LOG_IF(ERROR, !status.ok()) << status;
}

std::vector<std::string> NetemCommand(const std::string& net_device, const std::string& words) {
  // `add` does not replace what is there: somebody else's netem stays.
  std::vector<std::string> argv = {
      "tc", "qdisc", "add", "dev", net_device, "root", "netem", "limit", absl::StrCat(kNetemLimit)};
  for (const auto word : absl::StrSplit(words, ' ', absl::SkipEmpty())) argv.emplace_back(word);
  return argv;
}

absl::StatusOr<std::unique_ptr<Netem>> Netem::Start(const std::vector<std::string>& net_devices,
                                                    const std::string& words) {
  auto netem = std::unique_ptr<Netem>(new Netem);
  for (const std::string& net_device : net_devices) {
    if (absl::Status s = CheckVirtual(net_device); !s.ok()) return s;
    if (absl::Status s = Run(NetemCommand(net_device, words)); !s.ok()) return s;
    netem->net_devices_.push_back(net_device);
  }
  return netem;
}

Netem::~Netem() {
  for (const std::string& net_device : net_devices_) {
    const absl::Status status = Run({"tc", "qdisc", "del", "dev", net_device, "root"});
    LOG_IF(ERROR, !status.ok()) << status;
  }
}

}  // namespace tokamak::faults
