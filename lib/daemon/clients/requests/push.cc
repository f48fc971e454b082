#include "lib/daemon/clients/requests/push.h"

#include "absl/types/span.h"
#include "lib/node/calls/object_messages.h"
#include "lib/node/node.h"

namespace tokamak::daemon {

static_assert(client::kMaxPushed <= node::PushRequest::kMaxPushed, "a request of one is a request of the other");

void PendingPush::Start(const client::PushRequest& request) {
  const base::Duration timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  push_ = asker().node().Push(request.node, {timeout, request.ids}, [this](absl::Span<const absl::Status> statuses) {
    client::PushReply reply;
    for (const absl::Status& status : statuses) reply.outcomes.push_back(client::Outcome::Of(status));
    EndWith(reply);
  });
}

}  // namespace tokamak::daemon
