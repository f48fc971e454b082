#include "lib/verbs/soft/cm/present_peers.h"

#include <utility>

namespace tokamak::verbs::soft {

void PresentPeers::Add(const Address& peer, uint64_t period) {
  Turn(period);
  if (now_.size() < kMost) now_.insert(peer.ip);
}

bool PresentPeers::Has(const Address& peer, uint64_t period) {
  Turn(period);
  return now_.count(peer.ip) > 0 || before_.count(peer.ip) > 0;
}

void PresentPeers::Turn(uint64_t period) {
  if (period == period_) return;
  before_ = std::exchange(now_, {});
  if (period > period_ + 1) before_.clear();
  period_ = period;
}

}  // namespace tokamak::verbs::soft
