#include "lib/verbs/soft/udp/segment_finder.h"

#include "lib/base/bytes.h"

namespace tokamak::verbs::soft {

SegmentFinder::SegmentFinder() {
  static constexpr uint8_t kZeros[kMaxDatagram] = {};
  Address any;
  any.ip[10] = any.ip[11] = 0xff;
  const IcrcFlow flow(any, any);
  uint32_t stated_least = flow.Start(0, {kZeros, kBthLength}, kMinDatagram);
  for (uint32_t length = kMinDatagram; length <= kMaxDatagram; length += 4) {
    effect_[length / 4] = flow.OfDatagram(0, {kZeros, length}) ^ stated_least;
    stated_least = IcrcFlow::Extend(stated_least, kZeros, 4);
  }
}

uint32_t SegmentFinder::Find(const IcrcFlow& flow, uint16_t identification, absl::Span<const uint8_t> bytes) const {
  if (bytes.size() <= kMinDatagram) return 0;
  uint32_t crc = flow.Start(identification, bytes.first(kBthLength), kMinDatagram);
  for (uint32_t length = kMinDatagram; length < bytes.size() && length <= kMaxDatagram; length += 4) {
    const uint8_t* last_word = &bytes[length - kIcrcLength];
    if ((crc ^ effect_[length / 4]) == base::LoadLittle<uint32_t>(last_word)) return length;
    crc = IcrcFlow::Extend(crc, last_word, kIcrcLength);
  }
  return 0;
}

}  // namespace tokamak::verbs::soft
