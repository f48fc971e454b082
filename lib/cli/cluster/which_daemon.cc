#include "lib/cli/cluster/which_daemon.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "lib/cli/cluster/cluster.h"

namespace tokamak::cli {
namespace {

// A service's tokd: packaging/tokd.json.
constexpr char kServiceSocket[] = "/run/tokamak/tokd.sock";

}  // namespace

absl::StatusOr<std::string> FindSocket(const Flags& flags, const std::string& by_command) {
  if (!flags.socket.empty()) return flags.socket;
  if (!by_command.empty()) return by_command;
  const char* const socket = std::getenv("TOKAMAK_SOCKET");
  if (!flags.cluster_chosen && socket != nullptr && *socket != '\0') return std::string(socket);
  const auto cluster = LoadCluster(flags.state);
  if (!flags.cluster_chosen && absl::IsNotFound(cluster.status()) &&
      (access(kServiceSocket, F_OK) == 0 || errno == EACCES)) {  // connecting reports a refusal
    return std::string(kServiceSocket);
  }
  if (!cluster.ok()) return cluster.status();
  if (flags.node < 1 || flags.node > cluster->nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--node ", flags.node, ": the cluster has nodes 1 to ", cluster->nodes.size()));
  }
  return cluster->nodes[flags.node - 1].socket;
}

std::vector<std::string> FindSocketsBeside(const Flags& flags, const std::string& socket) {
  const auto cluster = LoadCluster(flags.state);
  if (!cluster.ok()) return {};
  std::vector<std::string> sockets;
  for (const ClusterProcess& node : cluster->nodes) sockets.push_back(node.socket);
  const auto own = std::find(sockets.begin(), sockets.end(), socket);
  if (own == sockets.end()) return {};
  sockets.erase(own);
  return sockets;
}

}  // namespace tokamak::cli
