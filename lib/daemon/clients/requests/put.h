// PendingPuts are the objects of one CreateAndSeal that could not be put at once: each waits for
// room, then, if confirmed, for the directory. One answer covers all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/handle.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/requests/pending_request.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

class PendingPuts final : public PendingRequest {
 public:
  using PendingRequest::PendingRequest;
  using Place = absl::StatusOr<store::Location>;

  static bool Waits(const client::CreateAndSealRequest& request, const Place& place);

  // `places`: of `objects`, in order; at least one waits. `reply` is complete for the others.
  void Start(const client::CreateAndSealRequest& request, absl::Span<const store::SmallObject> objects,
             absl::Span<const Place> places, client::CreateAndSealReply reply);

 private:
  void FillLater(size_t index, const store::SmallObject& object, base::Time deadline);
  void Confirm(size_t index, const base::ObjectVersion& version);
  void EndOne(size_t index, const absl::Status& status);

  client::CreateAndSealReply reply_;
  bool confirmed_ = false;
  size_t unanswered_ = 0;
  std::vector<base::Pending> handles_;  // by index; room, then the directory's answer
};

}  // namespace tokamak::daemon
