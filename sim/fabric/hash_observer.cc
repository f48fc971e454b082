#include "sim/fabric/hash_observer.h"

#include "sim/fabric/switch/route_table.h"

namespace tokamak::sim {

void HashObserver::Fold(uint64_t kind, const Place& place, const Frame& frame, uint64_t value) {
  const uint64_t what = uint64_t{frame.wire_bytes} << 32 | uint64_t{frame.is_pause} << 31 |
                        (frame.is_pause ? frame.pause.enabled : frame.headers.psn);
  Fold(kind, place, what, value);
}

void HashObserver::Fold(uint64_t kind, const Place& place, uint64_t first, uint64_t second) {
  ++events_;
  const uint64_t where = kind << 56 | uint64_t{place.node} << 16 | place.port;
  for (uint64_t value : {loop_.Now().picoseconds(), where, first, second}) hash_ = MixBits(hash_ + value);
}

}  // namespace tokamak::sim
