#include "lib/daemon/clients/requests/create.h"

#include "absl/strings/str_cat.h"
#include "lib/daemon/clients/wire.h"
#include "lib/directory/directory.h"

namespace tokamak::daemon {

namespace {

absl::Status IdTaken(const base::ObjectId& id, const directory::LocatedObject& info) {
  return absl::AlreadyExistsError(absl::StrCat("object ", id.ToHex(), " exists already in the cluster, on ",
                                               info.holders.empty() ? "another node" : info.holders.front(),
                                               ": delete it first, or choose another id"));
}

}  // namespace

void PendingCreate::Start(const client::CreateRequest& request, const base::ObjectName& name) {
  create_ = {request.id, request.data_size, request.metadata_size, asker().owner(), name};
  timeout_ = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  if (!request.confirmed) return Reserve();
  handle_ =
      asker().node().Locate(create_.id, base::Duration(), [this](const absl::StatusOr<directory::LocatedObject>& info) {
        if (absl::IsNotFound(info.status())) return Reserve();
        EndWith(info.ok() ? IdTaken(create_.id, *info) : info.status());
      });
}

void PendingCreate::Reserve() {
  store::Store& store = asker().store();
  if (timeout_ <= base::Duration()) {
    return Reserved(store.Create(create_.id, create_.data_size, create_.metadata_size, create_.who, create_.name));
  }
  if (const auto place = store.CreateIfRoom(create_); place.has_value()) return Reserved(*place);
  handle_ = store.CreateLater(create_, asker().loop().Now() + timeout_,
                              [this](const absl::StatusOr<store::Location>& place) { Reserved(place); });
}

void PendingCreate::Reserved(const absl::StatusOr<store::Location>& place) {
  if (!place.ok()) return EndWith(place.status());
  client::CreateReply reply;
  reply.location = ToWire(*place);
  EndWith(reply);
}

}  // namespace tokamak::daemon
