#include "lib/verbs/ibv/posting/kept_receives.h"

#include <algorithm>
#include <utility>

#include "lib/verbs/ibv/posting/posting.h"
#include "lib/verbs/ibv/posting/work_ring.h"

namespace tokamak::verbs::ibv {

int KeptReceives::PostTo(ibv_qp* queue_pair, bool never_none) {
  const std::vector<Kept> kept = std::exchange(kept_, {});
  ReceiveBatch batch;
  for (size_t next = 0; next < kept.size();) {
    for (; next < kept.size() && batch.HasRoomFor(std::max<size_t>(kept[next].sges.size(), 1)); ++next) {
      AddReceive({0, kept[next].sges}, kReceiveMark | kept[next].position, never_none, &batch);
    }
    const Posted posted = batch.PostTo(queue_pair);
    if (posted.accepted < posted.wanted) return posted.error;
  }
  return 0;
}

}  // namespace tokamak::verbs::ibv
