#include "lib/base/trace.h"

namespace tokamak::base {

const char* ToString(Phase phase) {
  switch (phase) {
    case Phase::kDirectory:
      return "directory";
    case Phase::kReserve:
      return "reserve";
    case Phase::kQueue:
      return "queue";
    case Phase::kRegister:
      return "register";
    case Phase::kRequest:
      return "request";
    case Phase::kData:
      return "data";
    case Phase::kCopy:
      return "copy";
    case Phase::kConfirm:
      return "confirm";
    case Phase::kSeal:
      return "seal";
    case Phase::kNotify:
      return "notify";
    case Phase::kOver:
      return "over";
    case Phase::kSession:
      return "session";
  }
  return "?";
}

void TraceHash::Record(const TraceEvent& event) {
  Fold(event.time.picoseconds());
  Fold(static_cast<uint64_t>(event.kind));
  Fold(event.node);
  Fold(event.number);
  Fold(event.size);
  if (event.kind == TraceKind::kPhase) Fold(event.activity);
  ++events_;
}

void TraceHash::Fold(uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    hash_ ^= (value >> shift) & 0xff;
    hash_ *= 0x100000001b3;
  }
}

}  // namespace tokamak::base
