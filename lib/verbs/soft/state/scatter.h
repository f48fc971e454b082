// The one copy of arriving bytes: from a packet's slices to the memory of a request.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/memory.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

enum class ScatterResult : uint8_t {
  kDone,
  kNoKey,        // a local key that does not cover the memory, or memory that the host has no more
  kNotWritable,  // memory that may not be written
};

// Copies `payload`, where it has bytes, into `sges`, where these are not phantom, from `offset`
// bytes into them on; the caller has seen that it fits. Keys are looked at as they are needed;
// nothing is written where the result is not kDone, but for the part before the bad sge.
ScatterResult Scatter(const KeyTable& keys, DomainId domain, absl::Span<const Sge> sges, uint32_t offset,
                      absl::Span<const PayloadSlice> payload);

// The same into one piece of memory, which has bytes. False: the host has not all of it any more.
[[nodiscard]] bool CopyPayload(const KeyTable& keys, const Packet& packet, uint8_t* to);

}  // namespace tokamak::verbs::soft
