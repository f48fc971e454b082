#include "lib/verbs/soft/state/gather.h"

#include <algorithm>

namespace tokamak::verbs::soft {

bool MayGather(const KeyTable& keys, DomainId domain, const SourceBytes& source, uint32_t offset, uint32_t length) {
  if (source.is_inline || length == 0) return true;
  for (uint32_t i = 0; i < source.sge_count && length > 0; ++i) {
    const Sge& sge = source.sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    if (!keys.LocalAllows(domain, sge, false)) return false;
    const uint32_t part = std::min(length, sge.length - offset);
    if (!keys.IsPhantom(sge.lkey) && !keys.MayRead(keys.MemoryOf(sge) + offset, part)) return false;
    length -= part;
    offset = 0;
  }
  return true;
}

void Gather(const KeyTable& keys, const SourceBytes& source, const uint8_t* inline_bytes, uint32_t offset,
            uint32_t length, Outbox& outbox, Packet* packet) {
  if (length == 0) return;
  if (source.is_inline) {
    packet->payload[packet->slices++] = {inline_bytes + offset, length};
    return;
  }
  for (uint32_t i = 0; i < source.sge_count && length > 0; ++i) {
    const Sge& sge = source.sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint32_t part = std::min(length, sge.length - offset);
    const bool phantom = keys.IsPhantom(sge.lkey);
    packet->payload[packet->slices++] = {phantom ? nullptr : keys.MemoryOf(sge) + offset, part};
    outbox.Uses(sge.lkey);
    length -= part;
    offset = 0;
  }
}

}  // namespace tokamak::verbs::soft
