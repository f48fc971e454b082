#include "lib/daemon/clients/requests/hash.h"

#include "absl/status/statusor.h"

namespace tokamak::daemon {

void PendingHash::Start(const client::HashRequest& request) {
  hash_ = asker().store().HashLater(request.id, asker().owner(), [this](const absl::StatusOr<uint64_t>& hash) {
    if (!hash.ok()) return EndWith(hash.status());
    client::HashReply reply;
    reply.hash = *hash;
    EndWith(reply);
  });
}

}  // namespace tokamak::daemon
