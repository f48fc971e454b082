// FrameEdits change the bytes of an outside host's frame: congestion marks, damage, and check sums
// that the host's kernel left to a network card that is not there.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "sim/emulation/frame_head.h"

namespace tokamak::sim {

// Sets the congestion mark (RFC 3168: CE) and corrects the header's check sum (RFC 1624). The frame
// must be of kind kRoce or kIpv4. RoCE's ICRC does not cover the mark.
void MarkCongestion(absl::Span<uint8_t> frame);

// Makes the ICRC of a frame of kind kRoce wrong. UDP's check sum is cleared, or the kernel would
// drop the frame before the NIC could count it.
void DamageRoce(absl::Span<uint8_t> frame);

// Puts in the check sum over all bytes from `start` on, `offset` bytes behind that, where the sum
// of the pseudo header stands. Returns false, changing nothing, if the frame is too short for them.
[[nodiscard]] bool CompleteChecksum(absl::Span<uint8_t> frame, uint32_t start, uint32_t offset);

// Returns the Internet's check sum (RFC 1071) of `bytes`.
uint16_t InternetChecksum(absl::Span<const uint8_t> bytes);

}  // namespace tokamak::sim
