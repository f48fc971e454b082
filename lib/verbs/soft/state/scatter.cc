#include "lib/verbs/soft/state/scatter.h"

#include <algorithm>

namespace tokamak::verbs::soft {

ScatterResult Scatter(const KeyTable& keys, DomainId domain, absl::Span<const Sge> sges, uint32_t offset,
                      absl::Span<const PayloadSlice> payload) {
  size_t at = 0;
  bool checked = false;
  bool phantom = false;
  for (PayloadSlice slice : payload) {
    while (slice.length > 0) {
      if (at == sges.size()) return ScatterResult::kNoKey;
      const Sge& sge = sges[at];
      if (offset >= sge.length) {
        offset -= sge.length;
        ++at;
        checked = false;
        continue;
      }
      if (!checked) {
        if (!keys.LocalCovers(domain, sge)) return ScatterResult::kNoKey;
        if (!keys.LocalAllows(domain, sge, true)) return ScatterResult::kNotWritable;
        checked = true;
        phantom = keys.IsPhantom(sge.lkey);
      }
      const uint32_t part = std::min(slice.length, sge.length - offset);
      if (slice.data != nullptr) {
        if (!phantom && !keys.Write(keys.MemoryOf(sge) + offset, slice.data, part)) return ScatterResult::kNoKey;
        slice.data += part;
      }
      slice.length -= part;
      offset += part;
    }
  }
  return ScatterResult::kDone;
}

bool CopyPayload(const KeyTable& keys, const Packet& packet, uint8_t* to) {
  for (const PayloadSlice& slice : packet.pieces()) {
    if (slice.length > 0 && slice.data != nullptr && !keys.Write(to, slice.data, slice.length)) return false;
    to += slice.length;
  }
  return true;
}

}  // namespace tokamak::verbs::soft
