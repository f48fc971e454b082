#include "lib/transport/rails/secondary_rails.h"

#include "absl/strings/str_cat.h"

namespace tokamak::transport {

void SecondaryRails::Make() {
  rails_.resize(bulk_.shape().rails);
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if (rail != bulk_.shape().primary) rails_[rail] = std::make_unique<SecondaryRail>(context_, host_, bulk_, rail);
  }
}

absl::Status SecondaryRails::Learn(absl::Span<const verbs::Address> rails) {
  if (bulk_.side() != BulkChannel::Side::kPuller || !rails_.empty() || rails.size() != bulk_.shape().rails) {
    return absl::InvalidArgumentError(absl::StrCat(rails.size(), " rails out of turn"));
  }
  Make();
  peers_.assign(rails.begin(), rails.end());
  return absl::OkStatus();
}

void SecondaryRails::Join() {
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if (rails_[rail] != nullptr) rails_[rail]->Join(peers_[rail]);
  }
}

absl::Status SecondaryRails::OnPeerDown(uint32_t number, absl::Span<const WantedWrite> wanted) {
  SecondaryRail* rail = Find(number);
  if (rail == nullptr || (bulk_.side() == BulkChannel::Side::kPuller && !wanted.empty())) {
    return absl::InvalidArgumentError(absl::StrCat("RAIL_DOWN of rail ", number));
  }
  return rail->OnPeerDown(wanted);
}

void SecondaryRails::DropLinks() {
  for (const auto& rail : rails_) {
    if (rail != nullptr) rail->DropLinks();
  }
}

}  // namespace tokamak::transport
