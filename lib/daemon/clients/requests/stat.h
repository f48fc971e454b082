// PendingStat joins the store's and the directory's knowledge of one object.
#pragma once

#include "absl/status/statusor.h"
#include "lib/base/handle.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"
#include "lib/directory/directory.h"

namespace tokamak::daemon {

class PendingStat final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  void Start(const client::StatRequest& request);

 private:
  void Located(const absl::StatusOr<directory::LocatedObject>& info);

  client::StatReply reply_;
  base::Pending question_;
};

}  // namespace tokamak::daemon
