// PendingPush has another node bring objects to itself.
#pragma once

#include "lib/base/handle.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"

namespace tokamak::daemon {

class PendingPush final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  void Start(const client::PushRequest& request);

 private:
  base::Pending push_;
};

}  // namespace tokamak::daemon
