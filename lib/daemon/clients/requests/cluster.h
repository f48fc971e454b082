// PendingNodes asks the directory for the nodes of the cluster; PendingCluster also asks each node
// for its numbers.
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

  std::string after_;  // of the previous page; empty: first page
  base::Pending look_;
};

}  // namespace tokamak::daemon
