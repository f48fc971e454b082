#include "lib/node/pulls/pull_place.h"

#include <optional>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::node {

absl::Status PullPlace::Reserve(const directory::LocatedObject& info) {
  CHECK(!reserved());
  const auto place = store_.CreateCopy({id_, info.generation}, info.data_size, info.metadata_size, owner_, info.name);
  if (!place.ok()) return place.status();
  CHECK(store_.Pin(id_, owner_).ok());
  place_ = *place;
  arrived_ = 0;
  moved_ = 0;
  return absl::OkStatus();
}

void PullPlace::Cut(uint64_t arrived) {
  if (arrived == 0 || arrived >= size()) return GiveUp();
  arrived_ = arrived;
  moved_ = arrived;
}

void PullPlace::Seal() {
  CHECK(reserved());
  place_.reset();
  CHECK(store_.Seal(id_, owner_).ok());
  CHECK(store_.Release(id_, owner_).ok());
}

void PullPlace::GiveUp() {
  if (!std::exchange(place_, std::nullopt).has_value()) return;
  arrived_ = 0;
  moved_ = 0;
  CHECK(store_.Abort(id_, owner_).ok());
  CHECK(store_.Release(id_, owner_).ok());
}

}  // namespace tokamak::node
