#include "lib/transport/slots.h"

#include <utility>

#include "glog/logging.h"

namespace tokamak::transport {

absl::StatusOr<Slots> Slots::Create(verbs::ProtectionDomain& domain, uint32_t count, uint32_t size,
                                    verbs::Access access) {
  const uint64_t bytes = uint64_t{count} * size;
  std::unique_ptr<uint8_t[]> memory(new uint8_t[bytes]);  // not cleared: slots that are never used are never touched
  auto region = domain.RegisterMemory(absl::MakeSpan(memory.get(), bytes), access);
  if (!region.ok()) return region.status();
  return Slots(std::move(memory), *std::move(region), count, size);
}

SendRing::SendRing(uint32_t entries) : entries_(entries - entries % kMinEntries) { CHECK_GE(entries, kMinEntries); }

bool SendRing::Complete(uint32_t entry) {
  const uint64_t distance = (entry + entries_ - head_ % entries_) % entries_;
  if (entry >= entries_ || distance >= taken()) return false;
  head_ += distance + 1;
  return true;
}

}  // namespace tokamak::transport
