#include "lib/daemon/clients/requests/cluster.h"

#include <vector>

#include "absl/status/statusor.h"
#include "lib/daemon/clients/wire.h"
#include "lib/directory/directory.h"

namespace tokamak::daemon {

void PendingNodes::Start() {
  nodes_ = asker().node().Nodes([this](const absl::StatusOr<std::vector<directory::NodeInfo>>& nodes) {
    if (!nodes.ok()) return EndWith(nodes.status());
    client::NodesReply reply;
    for (const directory::NodeInfo& info : *nodes) {
      if (reply.nodes.size() == client::kMaxNodes) break;
      reply.nodes.push_back(ToWire(info, info.id == asker().node().options().id));
    }
    EndWith(reply);
  });
}

void PendingCluster::Start(const client::ClusterRequest& request) {
  after_ = request.after;
  look_ = asker().node().LookAtCluster([this](const node::ClusterView::View& view) { Seen(view); });
}

void PendingCluster::Seen(const node::ClusterView::View& view) {
  client::ClusterReply reply;
  reply.located = view.located;
  for (const node::ClusterView::Entry& entry : view.nodes) {
    if (!after_.empty() && entry.node.id <= after_) continue;
    reply.more = reply.nodes.size() == client::kMaxViewed;
    if (reply.more) break;
    reply.nodes.push_back(ToWire(entry, entry.node.id == asker().node().options().id));
  }
  EndWith(reply);
}

}  // namespace tokamak::daemon
