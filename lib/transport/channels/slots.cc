#include "lib/transport/channels/slots.h"

#include "lib/base/check.h"

namespace tokamak::transport {

SendRing::SendRing(uint32_t entries) : entries_(entries - entries % kMinEntries) { CHECK_GE(entries, kMinEntries); }

bool SendRing::Complete(uint32_t entry) {
  const uint64_t distance = (entry + entries_ - head_ % entries_) % entries_;
  if (entry >= entries_ || distance >= taken()) return false;
  head_ += distance + 1;
  return true;
}

}  // namespace tokamak::transport
