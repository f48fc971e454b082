// PendingPrefetch brings objects to this node: each by itself, so that none is pinned until the
// last has come. One answer covers all.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/handle.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"

namespace tokamak::daemon {

class PendingPrefetch final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  // Requires at least one object.
  void Start(const client::PrefetchRequest& request);

 private:
  void EndOne(size_t index, const absl::Status& status);

  client::PrefetchReply reply_;
  size_t unanswered_ = 0;
  std::vector<base::Pending> prefetches_;
};

}  // namespace tokamak::daemon
