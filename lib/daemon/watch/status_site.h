// StatusSite is the content of --http, read-only: a node's metrics, its health, and a page of the
// cluster with its JSON.
//
//  /metrics   Prometheus' text              /healthz  200: the control loop turns
//  /          the page of the cluster       /readyz   200: in the cluster, and not draining
//  /api/node, /api/nodes, /api/objects      the page's data, as JSON
//
// Asks the control loop (loop_desk.h) for one copy of its numbers, formats on the asking thread.
// Thread rule: Get on any thread, several at once.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/handle.h"
#include "lib/base/mutex.h"
#include "lib/daemon/metrics/node_snapshot.h"
#include "lib/daemon/watch/hot_objects.h"
#include "lib/daemon/watch/http_server.h"
#include "lib/daemon/watch/loop_desk.h"
#include "lib/node/cluster_view.h"

namespace tokamak::daemon {

class StatusSite final {
 public:
  // Bounds an answer's age; a slower loop is unhealthy.
  static constexpr std::chrono::milliseconds kDeadline{2000};
  // Reuse of one look at the objects.
  static constexpr std::chrono::milliseconds kObjectsAge{2000};

  // Run on the control loop.
  struct Questions {
    std::function<NodeSnapshot()> snapshot;
    std::function<base::Pending(node::ClusterView::Callback)> cluster;
    std::function<base::Pending(HotObjects::Done)> objects;
  };

  // `desk` must outlive it.
  StatusSite(LoopDesk& desk, Questions questions) : desk_(desk), questions_(std::move(questions)) {}

  HttpAnswer Get(absl::string_view path);

 private:
  template <typename Show>
  HttpAnswer WithSnapshot(const Show& show);
  HttpAnswer Nodes();
  HttpAnswer Objects();

  LoopDesk& desk_;
  const Questions questions_;
  base::Mutex mutex_;
  std::string objects_ ABSL_GUARDED_BY(mutex_);  // JSON; empty: none yet
  std::chrono::steady_clock::time_point objects_seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::daemon
