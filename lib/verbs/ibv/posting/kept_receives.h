// KeptReceives are receives that were posted before the provider has their queue pair: copied with
// their Sges, and given to the provider in that order once it has.
//
// Bound: those of a receive queue.
// Thread rule: the queue pair's thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

class KeptReceives final {
 public:
  // Takes a checked request, noted at `position` of the queue pair's ring.
  void Keep(const ReceiveRequest& request, uint64_t position) {
    kept_.push_back({position, {request.sges.begin(), request.sges.end()}});
  }

  // Posts all of them, once. Returns 0, or an errno if the provider refused one: it got no more
  // than it has room for, so it has ended, or is broken. `never_none`: see Batch::SetSges.
  [[nodiscard]] int PostTo(ibv_qp* queue_pair, bool never_none);

 private:
  struct Kept {
    uint64_t position;
    std::vector<Sge> sges;
  };

  std::vector<Kept> kept_;
};

}  // namespace tokamak::verbs::ibv
