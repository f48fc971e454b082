#include "lib/cli/tune_command.h"

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/cli/cluster/cluster.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/tune/asked_holder.h"
#include "lib/cli/tune/client_holder.h"
#include "lib/cli/tune/command.h"

namespace tokamak::cli {

namespace {

absl::StatusOr<std::string> FindPeerSocket(const Flags& flags, const tune::CommandFlags& own) {
  if (!own.peer_socket.empty()) return own.peer_socket;
  const auto cluster = LoadCluster(flags.state);
  if (!cluster.ok() || !flags.socket.empty()) {
    return absl::InvalidArgumentError("tune: give the other node, by --peer or --peer-socket (see tok tune --help)");
  }
  const uint32_t peer = own.peer_node > 0 ? own.peer_node : flags.node == 1 ? 2 : 1;
  if (peer > cluster->nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tune: there is no node ", peer, ", the cluster has ", cluster->nodes.size(), ": two are needed"));
  }
  return cluster->nodes[peer - 1].socket;
}

// The context's client is the puller's, or, with --serve, the holder's.
absl::Status Measure(const CommandContext& context, const tune::CommandFlags& own, const tune::LinkSettings& settings,
                     const std::string& peer_socket) {
  const bool json = context.flags.json;
  if (own.serve) return tune::RunServe(context.client, context.undo, json);
  if (!own.peer.empty()) {
    auto holder = tune::AskedHolder::Call(context.client, own.peer, settings.seed, context.undo);
    if (!holder.ok()) return holder.status();
    return tune::RunCommand(own, settings, context.client, *holder, context.undo, json);
  }
  ClientOptions options;
  options.name = "tok tune";
  auto peer = AsAbsl(Client::Connect(peer_socket, options));
  if (!peer.ok()) return peer.status();
  tune::ClientHolder holder(*peer);
  return tune::RunCommand(own, settings, context.client, holder, context.undo, json);
}

int Tune(const CommandContext& context, const tune::CommandFlags& own) {
  const auto settings = tune::SettingsOf(own);
  if (!settings.ok()) return Fail(context.flags, settings.status(), 2);
  const bool by_socket = !own.serve && own.peer.empty();
  const absl::StatusOr<std::string> peer_socket = by_socket ? FindPeerSocket(context.flags, own) : std::string();
  if (!peer_socket.ok()) return Fail(context.flags, peer_socket.status(), 2);
  return ExitCode(context.flags, Measure(context, own, *settings, *peer_socket));
}

}  // namespace

Command TuneCommand() {
  const auto own = std::make_shared<tune::CommandFlags>();
  Command command;
  command.name = "tune";
  command.add = [own](CLI::App& app) { tune::AddCommand(app, *own); };
  command.run = Command::RunWithDaemon([own](const CommandContext& context) { return Tune(context, *own); });
  return command;
}

}  // namespace tokamak::cli
