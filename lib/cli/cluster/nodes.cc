#include "lib/cli/cluster/nodes.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/natural_order.h"
#include "lib/cli/common/output.h"
#include "lib/cli/common/wording.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

using nlohmann::json;

namespace {

absl::Status Nodes(const CommandContext& context, const NoFlags& /*own*/) {
  auto view = AsAbsl(context.client.Cluster());
  if (!view.ok()) return view.status();
  std::sort(view->nodes.begin(), view->nodes.end(),
            [](const ViewedNode& a, const ViewedNode& b) { return NaturallyBefore(a.info.name, b.info.name); });
  json all = json::array();
  std::vector<std::vector<std::string>> rows = {{"NODE", "ADDRESS", "DEVICE", "MEMORY", "STATE", ""}};
  for (const ViewedNode& viewed : view->nodes) {
    const NodeInfo& node = viewed.info;
    all.push_back({{"name", node.name},
                   {"address", node.address},
                   {"device", node.device},
                   {"incarnation", node.incarnation},
                   {"capacity_bytes", node.capacity},
                   {"state", Wording(viewed.state)},
                   {"unheard_seconds", std::chrono::duration<double>(viewed.unheard_for).count()},
                   {"is_this", node.is_this}});
    rows.push_back({node.name, node.address, node.device, base::FormatSize(node.capacity), StandingOf(viewed),
                    node.is_this ? "(this)" : ""});
  }
  if (!view->located) std::cerr << "tok: the directory is away: these are the nodes that it named last\n";
  std::cout << (context.flags.json ? ToText(std::move(all), 2) + "\n" : FormatTable(rows, {3}));
  return absl::OkStatus();
}

}  // namespace

Command NodesCommand() {
  return CommandWithDaemon({"nodes", "list the nodes of the cluster", "tok nodes"}, AddNoFlags, Nodes);
}

}  // namespace tokamak::cli
