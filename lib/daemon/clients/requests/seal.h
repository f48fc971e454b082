// PendingSeal waits until the directory has accepted the object of a confirmed put.
#pragma once

#include "lib/base/handle.h"
#include "lib/base/object_id.h"
#include "lib/daemon/clients/requests/pending_request.h"

namespace tokamak::daemon {

class PendingSeal final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  // Call it in the task that seals `version`.
  void Start(const base::ObjectVersion& version);

 private:
  base::Pending confirmation_;
};

}  // namespace tokamak::daemon
