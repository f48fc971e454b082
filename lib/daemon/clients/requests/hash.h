// PendingHash computes the hash of an object that is here.
#pragma once

#include "lib/base/handle.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"

namespace tokamak::daemon {

class PendingHash final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  void Start(const client::HashRequest& request);

 private:
  base::Pending hash_;
};

}  // namespace tokamak::daemon
