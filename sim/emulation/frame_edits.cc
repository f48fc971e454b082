#include "sim/emulation/frame_edits.h"

#include "lib/base/bytes.h"
#include "lib/base/check.h"

namespace tokamak::sim {
namespace {

constexpr uint32_t kTypeOfService = kEthernetHeader + 1;
constexpr uint32_t kHeaderChecksum = kEthernetHeader + 10;
constexpr uint8_t kMarkBits = 3;
constexpr uint32_t kUdpChecksum = 6;
constexpr uint32_t kIcrc = 4;

uint16_t Fold(uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

}  // namespace

void MarkCongestion(absl::Span<uint8_t> frame) {
  CHECK(frame.size() >= kEthernetHeader + 20);
  const uint16_t before = base::LoadBig16(&frame[kEthernetHeader]);
  frame[kTypeOfService] = static_cast<uint8_t>(frame[kTypeOfService] | kMarkBits);
  const uint16_t after = base::LoadBig16(&frame[kEthernetHeader]);
  // HC' = ~(~HC + ~m + m')
  const auto sum = static_cast<uint16_t>(~base::LoadBig16(&frame[kHeaderChecksum]));
  const uint32_t corrected = uint32_t{sum} + static_cast<uint16_t>(~before) + after;
  base::StoreBig16(&frame[kHeaderChecksum], static_cast<uint16_t>(~Fold(corrected)));
}

void DamageRoce(absl::Span<uint8_t> frame) {
  const uint32_t header = (frame[kEthernetHeader] & 0xfu) * 4;
  const uint32_t end = kEthernetHeader + base::LoadBig16(&frame[kEthernetHeader + 2]);
  CHECK(end <= frame.size() && end >= kEthernetHeader + header + kUdpChecksum + kIcrc);
  base::StoreBig16(&frame[kEthernetHeader + header + kUdpChecksum], 0);
  for (uint32_t i = end - kIcrc; i < end; ++i) frame[i] = static_cast<uint8_t>(~frame[i]);
}

bool CompleteChecksum(absl::Span<uint8_t> frame, uint32_t start, uint32_t offset) {
  if (start > frame.size() || frame.size() - start < 2 || offset > frame.size() - start - 2) return false;
  const uint16_t sum = InternetChecksum(frame.subspan(start));
  // 0 means none (RFC 768); in TCP both are one number.
  base::StoreBig16(&frame[start + offset], sum == 0 ? 0xffff : sum);
  return true;
}

uint16_t InternetChecksum(absl::Span<const uint8_t> bytes) {
  uint32_t sum = 0;
  size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) sum += base::LoadBig16(&bytes[i]);
  if (i < bytes.size()) sum += uint32_t{bytes[i]} << 8;
  return static_cast<uint16_t>(~Fold(sum));
}

}  // namespace tokamak::sim
