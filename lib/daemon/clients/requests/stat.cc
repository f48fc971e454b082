#include "lib/daemon/clients/requests/stat.h"

#include <string>

#include "lib/daemon/clients/wire.h"

namespace tokamak::daemon {

void PendingStat::Start(const client::StatRequest& request) {
  if (const auto info = asker().store().Stat(request.id); info.ok()) {
    reply_.here = true;
    reply_.object = ToWire(*info, asker().loop().Now());
  }
  reply_.object.id = request.id;
  question_ = asker().node().Locate(request.id, base::Duration(),
                                    [this](const absl::StatusOr<directory::LocatedObject>& info) { Located(info); });
}

void PendingStat::Located(const absl::StatusOr<directory::LocatedObject>& info) {
  reply_.located = info.ok() || absl::IsNotFound(info.status());
  if (!info.ok() && !reply_.here) return EndWith(info.status());
  if (info.ok()) {
    reply_.holders = info->holders;
    if (!reply_.here) reply_.object.data_size = info->data_size;
    if (!reply_.here) reply_.object.metadata_size = info->metadata_size;
    if (!reply_.here) reply_.object.name = std::string(info->name.text());
  }
  EndWith(reply_);
}

}  // namespace tokamak::daemon
