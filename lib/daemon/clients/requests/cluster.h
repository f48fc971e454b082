// PendingNodes and PendingCluster ask for the nodes of the cluster: the first the directory, the
// second each node for its numbers as well.
#pragma once

#include <string>

#include "lib/base/handle.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"
#include "lib/node/cluster_view.h"

namespace tokamak::daemon {

class PendingNodes final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  void Start();

 private:
  base::Pending nodes_;
};

class PendingCluster final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  void Start(const client::ClusterRequest& request);

 private:
  void Seen(const node::ClusterView::View& view);

  std::string after_;  // the last node of the page before; empty: the first page
  base::Pending look_;
};

}  // namespace tokamak::daemon
