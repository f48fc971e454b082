#include "lib/daemon/clients/requests/delete.h"

#include "absl/status/statusor.h"

namespace tokamak::daemon {

void PendingDelete::Start(const client::DeleteRequest& request) {
  delete_ = asker().node().Delete(request.id, asker().owner(),
                                  [this](const absl::StatusOr<uint32_t>& copies) { EndWith(copies.status()); });
}

}  // namespace tokamak::daemon
