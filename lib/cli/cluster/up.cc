#include "lib/cli/cluster/up.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <future>
#include <iostream>

#include "absl/status/statusor.h"
#include "lib/base/check.h"
#include "lib/base/text/printable.h"
#include "lib/cli/cluster/cluster.h"
#include "lib/cli/common/interruption.h"
#include "lib/cli/common/output.h"
#include "lib/os/file_descriptor.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

namespace {

void AddUp(CLI::App& up, ClusterSettings& own) {
  AddNodeDevices(up, own.places.devices);
  up.add_option("--nodes", own.nodes, "how many")->check(CLI::Range(1, 64))->capture_default_str();
  up.add_option("--memory", own.memory, "store of each node")->type_name("SIZE")->capture_default_str();
  up.add_option("--directory", own.directory, "tokd: node 1 serves it; redis: a private redis-server")
      ->check(CLI::IsMember({"tokd", "redis"}))
      ->capture_default_str();
  up.add_option("--port", own.places.port, "port that each node listens on")->capture_default_str();
  up.add_option("--udp-port", own.places.udp_port,
                "UDP port of the software NICs; they take the next one as well, for bulk")
      ->capture_default_str();
  up.add_option("--tokd", own.extra, "a further flag for each tokd (again for each; % stands for the node's name)")
      ->allow_extra_args(false);
}

void PrintCluster(const Flags& flags, const Cluster& cluster) {
  if (flags.json) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const ClusterProcess& node : cluster.nodes) {
      nodes.push_back({{"name", node.name}, {"pid", node.pid}, {"socket", node.socket}});
    }
    std::cout << ToText({{"state", flags.state}, {"nodes", nodes}}, 2) << "\n";
    return;
  }
  for (const ClusterProcess& node : cluster.nodes) {
    std::cout << node.name << "  pid " << node.pid << "  " << base::Printable(node.socket) << "\n";
  }
  const bool one = cluster.nodes.size() == 1;
  std::cout << cluster.nodes.size() << (one ? " node is up; stop it" : " nodes are up; stop them")
            << " with tok down\n";
}

int Up(const Flags& flags, const ClusterSettings& own) {
  ClusterSettings settings = own;
  settings.folder = flags.state;
  const os::FileDescriptor interrupted(eventfd(0, EFD_CLOEXEC));
  std::promise<absl::StatusOr<Cluster>> started;
  const Interruption interruption([&flags, &interrupted, result = started.get_future().share()] {
    const uint64_t one = 1;
    PCHECK(write(interrupted.get(), &one, sizeof one) == sizeof one);
    if (result.get().ok()) StopCluster(flags.state).IgnoreError();  // it was up just before
    PrintError(flags.json, absl::CancelledError("interrupted; what was started has been stopped"));
  });
  settings.interrupted = interrupted.get();
  const auto cluster = StartCluster(settings);
  started.set_value(cluster);
  if (absl::IsCancelled(cluster.status())) return 1;  // reported by the interruption
  if (!cluster.ok()) return Fail(flags, cluster.status(), 2);
  PrintCluster(flags, *cluster);
  return 0;
}

}  // namespace

Command UpCommand() {
  return CommandAlone(
      {"up", "start a cluster on this machine: node i on 127.0.0.i, or another loopback network where that is taken",
       "tok up --nodes 2 --memory 64MiB"},
      AddUp, Up);
}

void AddNodeDevices(CLI::App& command, std::vector<std::string>& devices) {
  command
      .add_option("--device", devices,
                  "RDMA devices that the nodes take in turn, such as ibv:rxe0,ibv:rxe1; the software NIC unless given")
      ->delimiter(',')
      ->allow_extra_args(false);
}

}  // namespace tokamak::cli
