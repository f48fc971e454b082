#include "lib/node/cluster/comparison.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tokamak::node {

void Comparison::Begin(bool thorough) {
  Stop();
  running_ = true;
  thorough_ = thorough;
  store_is_done_ = false;
  verified_to_.reset();
  pages_left_ = 1;
  if (thorough) held_after_.clear();
  NextSoon();
}

void Comparison::Continue() {
  if (std::exchange(waits_for_room_, false)) NextSoon();
}

void Comparison::Stop() {
  running_ = false;
  waits_for_room_ = false;
  asking_.reset();
  next_.Cancel();
}

void Comparison::NextSoon() {
  next_ = needs_.loop.Post([this] { Next(); });
}

void Comparison::Next() {
  const size_t room = callbacks_.room();
  waits_for_room_ = room == 0;
  if (waits_for_room_) return;
  if (store_is_done_) return AskWhatIsHeld();
  const auto page = needs_.store.List(std::min(room, directory::kMaxVerified), verified_to_);
  store_is_done_ = page.empty();
  if (store_is_done_) return NextSoon();
  verified_to_ = page.back().id;
  ++pages_left_;
  AskAboutThese(page);
}

void Comparison::AskAboutThese(const std::vector<store::StoredObject>& page) {
  std::vector<base::ObjectVersion> versions;
  for (const store::StoredObject& object : page) {
    const base::ObjectVersion version{object.id, object.location.generation};
    if (object.state == store::State::kSealed && !callbacks_.is_told(version)) versions.push_back(version);
  }
  if (versions.empty()) return NextSoon();
  asking_ = needs_.directory.Verify(needs_.self, versions, needs_.deadline,
                                    [this, versions](const absl::StatusOr<std::vector<uint32_t>>& unknown) {
                                      asking_.reset();
                                      Verified(versions, unknown);
                                    });
}

void Comparison::Verified(const std::vector<base::ObjectVersion>& versions,
                          const absl::StatusOr<std::vector<uint32_t>>& unknown) {
  if (!unknown.ok()) return End(unknown.status());
  for (const uint32_t place : *unknown) {
    if (place < versions.size() && !callbacks_.is_told(versions[place])) callbacks_.differs(versions[place], true);
  }
  NextSoon();
}

void Comparison::AskWhatIsHeld() {
  asking_ = needs_.directory.Held(needs_.self, held_after_, needs_.deadline,
                                  [this](const absl::StatusOr<directory::HeldReply>& held) {
                                    asking_.reset();
                                    Held(held);
                                  });
}

void Comparison::Held(const absl::StatusOr<directory::HeldReply>& held) {
  if (!held.ok()) {
    held_after_.clear();
    return End(held.status());
  }
  for (const base::ObjectVersion& version : held->versions) {
    const std::optional<store::Location> here = needs_.store.Find(version.id);
    const bool is_here = here.has_value() && here->generation == version.generation;
    if (!is_here && !callbacks_.is_told(version)) callbacks_.differs(version, false);
  }
  held_after_ = held->next;
  const bool is_over = held_after_.empty() || (!thorough_ && --pages_left_ == 0);
  if (is_over) {
    End(absl::OkStatus());
  } else {
    NextSoon();
  }
}

void Comparison::End(const absl::Status& status) {
  running_ = false;
  callbacks_.ended(status);
}

}  // namespace tokamak::node
