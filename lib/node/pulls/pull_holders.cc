#include "lib/node/pulls/pull_holders.h"

#include <algorithm>
#include <cstdint>

#include "lib/base/check.h"

namespace tokamak::node {

void PullHolders::BeginRound() {
  tried_.clear();
  refreshed_ = false;
}

bool PullHolders::Tried(const directory::NodeId& holder) const {
  return std::find(tried_.begin(), tried_.end(), holder) != tried_.end();
}

void PullHolders::Forgive(const directory::NodeId& holder) {
  const auto tried = std::find(tried_.begin(), tried_.end(), holder);
  CHECK(tried != tried_.end());
  tried_.erase(tried);
}

PullHolders::Choice PullHolders::Choose(const std::vector<directory::NodeId>& holders,
                                        const base::ObjectVersion& version) {
  const PullNeeds& needs = context_.needs;
  Choice choice;
  uint64_t best_rank = 0;
  for (const directory::NodeId& holder : holders) {
    if (Tried(holder)) continue;
    if (holder == needs.self) {  // the directory is wrong
      NoteTried(holder);
      needs.membership.Recheck(version);
      continue;
    }
    const Peers::Peer* peer = needs.peers.Find(holder);
    choice.look_up |= !refreshed_ && (peer == nullptr || peer->suspect);
    const Peers::Use use = needs.peers.UseOf(holder);
    if (use == Peers::Use::kBusy) choice.busy.push_back(holder);
    if (use != Peers::Use::kReady) continue;
    const uint64_t rank = (uint64_t{peer->pulls} << 32) + context_.random.Below(uint64_t{1} << 32);
    if (choice.ready.empty() || rank < best_rank) {
      choice.ready = holder;
      best_rank = rank;
    }
  }
  return choice;
}

}  // namespace tokamak::node
