#include "lib/verbs/soft/state/outbox.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tokamak::verbs::soft {

size_t Outbox::Flush(Port& port) {
  const size_t taken = port.Send(waiting());
  CHECK_LE(taken, size());
  begin_ += taken;
  if (empty()) begin_ = end_ = 0;
  return taken;
}

size_t Outbox::CountOf(uint32_t owner) const {
  const auto first = claims_.begin() + static_cast<ptrdiff_t>(begin_);
  return static_cast<size_t>(std::count_if(first, first + static_cast<ptrdiff_t>(size()),
                                           [owner](const Claim& c) { return c.owner == owner; }));
}

size_t Outbox::DropOwner(uint32_t owner) {
  return Drop([owner](const Claim& claim) { return claim.owner == owner; });
}

size_t Outbox::DropKey(uint32_t key) {
  return Drop([key](const Claim& claim) {
    return std::find(claim.key.begin(), claim.key.begin() + claim.keys, key) != claim.key.begin() + claim.keys;
  });
}

size_t Outbox::DropAcknowledged(uint32_t owner, uint64_t unacknowledged) {
  return Drop([=](const Claim& claim) { return claim.owner == owner && claim.sequence < unacknowledged; });
}

template <typename Condemned>
size_t Outbox::Drop(Condemned condemned) {
  size_t kept = begin_;
  for (size_t i = begin_; i < end_; ++i) {
    if (condemned(claims_[i])) continue;
    if (kept != i) {
      packets_[kept] = packets_[i];
      claims_[kept] = claims_[i];
    }
    ++kept;
  }
  const size_t dropped = end_ - kept;
  end_ = kept;
  if (empty()) begin_ = end_ = 0;
  return dropped;
}

}  // namespace tokamak::verbs::soft
