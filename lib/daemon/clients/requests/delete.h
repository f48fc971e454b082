// PendingDelete deletes one object in the whole cluster.
#pragma once

#include "lib/base/handle.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"

namespace tokamak::daemon {

class PendingDelete final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  void Start(const client::DeleteRequest& request);

 private:
  base::Pending delete_;
};

}  // namespace tokamak::daemon
