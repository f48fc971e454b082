#include "lib/base/trace.h"

namespace tokamak::base {

void TraceHash::Record(const TraceEvent& event) {
  Fold(event.time.picoseconds());
  Fold(static_cast<uint64_t>(event.kind));
  Fold(event.node);
  Fold(event.number);
  Fold(event.size);
  ++events_;
}

void TraceHash::Fold(uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    hash_ ^= (value >> shift) & 0xff;
    hash_ *= 0x100000001b3;
  }
}

}  // namespace tokamak::base
