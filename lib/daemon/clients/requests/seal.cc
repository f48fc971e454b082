#include "lib/daemon/clients/requests/seal.h"

namespace tokamak::daemon {

void PendingSeal::Start(const base::ObjectVersion& version) {
  confirmation_ = asker().node().Confirm(version, [this](const absl::Status& confirmed) { EndWith(confirmed); });
}

}  // namespace tokamak::daemon
