// PendingCreate reserves room for one object that the program fills, waiting for the room, and for
// a confirmed put first for the directory's answer that the id is free.
#pragma once

#include "absl/status/statusor.h"
#include "lib/base/handle.h"
#include "lib/base/text/object_name.h"
#include "lib/base/time.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

class PendingCreate final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;

  // May answer within the call.
  void Start(const client::CreateRequest& request, const base::ObjectName& name);

 private:
  void Reserve();
  void Reserved(const absl::StatusOr<store::Location>& place);

  store::CreateRequest create_;
  base::Duration timeout_;  // for room
  base::Pending handle_;
};

}  // namespace tokamak::daemon
