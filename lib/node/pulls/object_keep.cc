#include "lib/node/pulls/object_keep.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tokamak::node {

ObjectKeep::ObjectKeep(const Needs& needs, const KeepRequest& request, transport::Reply reply)
    : needs_(needs), request_(request), reply_(std::move(reply)) {
  Try();
}

bool ObjectKeep::IsHere() const {
  const std::optional<store::Location> here = needs_.store.Find(request_.version.id);
  return here.has_value() && here->generation == request_.version.generation;
}

void ObjectKeep::Try() {
  if (leaving()) return Say(KeepAnswer::kLeaving);
  if (IsHere()) return KeepWhenAnnounced();
  if (const KeepAnswer why = WhyNot(); why != KeepAnswer::kKept) return Say(why);
  step_ = needs_.pulls.StartOnce(request_.version, [this](const absl::Status& status) { Pulled(status); });
}

// kKept: no objection.
KeepAnswer ObjectKeep::WhyNot() const {
  if (needs_.dropped.Contains(request_.version)) return KeepAnswer::kGone;
  if (needs_.membership.fenced()) return KeepAnswer::kLater;
  if (needs_.store.Contains(request_.version.id)) return KeepAnswer::kInUse;
  return LeavesRoom(request_.data_size, request_.metadata_size) ? KeepAnswer::kKept : KeepAnswer::kNoRoom;
}

bool ObjectKeep::LeavesRoom(uint64_t data_size, uint64_t metadata_size) const {
  const uint64_t available = needs_.store.available_bytes();
  const uint64_t of_programs = needs_.store.statistics().capacity_bytes / kPartOfPrograms;
  const uint64_t room = available - std::min(available, of_programs);
  return data_size <= room && metadata_size <= room - data_size;
}

void ObjectKeep::Pulled(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return KeepWhenAnnounced();
    case absl::StatusCode::kNotFound:
      return Say(KeepAnswer::kGone);
    case absl::StatusCode::kResourceExhausted:
      return Say(KeepAnswer::kNoRoom);
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return Say(KeepAnswer::kInUse);
    default:
      return Say(KeepAnswer::kLater);
  }
}

// Never evicted, it must be known to the directory, or a deletion would miss it.
void ObjectKeep::KeepWhenAnnounced() {
  Membership& membership = needs_.membership;
  const base::ObjectVersion& version = request_.version;
  if (!membership.IsUnannounced(version)) return Keep(absl::OkStatus());
  if (membership.directory_away() || membership.IsConfirming(version)) return Say(KeepAnswer::kLater);
  step_ = membership.Confirm(version, needs_.deadline, [this](const absl::Status& status) { Keep(status); });
}

void ObjectKeep::Keep(const absl::Status& announced) {
  if (leaving()) return Say(KeepAnswer::kLeaving);
  if (!announced.ok()) return Say(KeepAnswer::kLater);
  const absl::StatusOr<store::StoredObject> here = needs_.store.Stat(request_.version.id);
  // Another content, or none.
  if (!here.ok() || here->version() != request_.version) return Say(KeepAnswer::kLater);
  // Others may have been kept, and it may exceed its announced size.
  const store::Location& place = here->location;
  const bool is_kept = here->origin == store::Origin::kCreatedHere;
  if (!is_kept && !LeavesRoom(place.data_size, place.metadata_size)) return Say(KeepAnswer::kNoRoom);
  Say(needs_.store.Keep(request_.version).ok() ? KeepAnswer::kKept : KeepAnswer::kLater);
}

}  // namespace tokamak::node
