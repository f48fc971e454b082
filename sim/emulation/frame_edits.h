// FrameEdits change an outside host's frame: congestion marks, damage, and check sums that its
// kernel left to a network card.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "sim/emulation/frame_head.h"

namespace tokamak::sim {

// Sets CE (RFC 3168) and corrects the header's check sum (RFC 1624). Requires kRoce or kIpv4. The
// ICRC does not cover CE.
void MarkCongestion(absl::Span<uint8_t> frame);

// Makes a kRoce frame's ICRC wrong, and clears UDP's check sum, lest the kernel drop it before the
// NIC.
void DamageRoce(absl::Span<uint8_t> frame);

// Puts the check sum of all from `start` on at `offset` behind it, where the pseudo header's sum
// stands. False, changing nothing: the frame is too short.
[[nodiscard]] bool CompleteChecksum(absl::Span<uint8_t> frame, uint32_t start, uint32_t offset);

// RFC 1071's.
uint16_t InternetChecksum(absl::Span<const uint8_t> bytes);

}  // namespace tokamak::sim
