#include "lib/daemon/clients/requests/put.h"

#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/check.h"

namespace tokamak::daemon {

bool PendingPuts::Waits(const client::CreateAndSealRequest& request, const Place& place) {
  if (place.ok()) return request.confirmed;
  return absl::IsResourceExhausted(place.status()) && request.timeout_microseconds > 0;
}

void PendingPuts::Start(const client::CreateAndSealRequest& request, absl::Span<const store::SmallObject> objects,
                        absl::Span<const Place> places, client::CreateAndSealReply reply) {
  reply_ = std::move(reply);
  confirmed_ = request.confirmed;
  handles_.resize(places.size());
  const base::Time deadline =
      asker().loop().Now() + base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  for (size_t i = 0; i < places.size(); ++i) {
    if (!Waits(request, places[i])) continue;
    ++unanswered_;
    if (places[i].ok()) {
      Confirm(i, {objects[i].id, places[i]->generation});
    } else {
      FillLater(i, objects[i], deadline);
    }
  }
}

// Keeps the bytes: the frame does not live that long.
void PendingPuts::FillLater(size_t index, const store::SmallObject& object, base::Time deadline) {
  std::vector<uint8_t> bytes(object.data.begin(), object.data.end());
  bytes.insert(bytes.end(), object.metadata.begin(), object.metadata.end());
  handles_[index] = asker().store().CreateLater(
      {object.id, object.data.size(), object.metadata.size(), asker().owner(), object.name}, deadline,
      [this, index, id = object.id, bytes = std::move(bytes)](const Place& place) {
        if (!place.ok()) return EndOne(index, place.status());
        store::Store& store = asker().store();
        base::Copy(asker().loop(), store.Memory(*place).data(), bytes.data(), bytes.size());
        CHECK(store.Seal(id, asker().owner()).ok());
        if (!confirmed_) return EndOne(index, place.status());
        Confirm(index, {id, place->generation});
      });
}

void PendingPuts::Confirm(size_t index, const base::ObjectVersion& version) {
  handles_[index] =
      asker().node().Confirm(version, [this, index](const absl::Status& confirmed) { EndOne(index, confirmed); });
}

void PendingPuts::EndOne(size_t index, const absl::Status& status) {
  reply_.outcomes[index] = client::Outcome::Of(status);
  if (--unanswered_ == 0) EndWith(reply_);
}

}  // namespace tokamak::daemon
