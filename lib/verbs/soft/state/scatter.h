// The one copy of arriving bytes: from a packet's slices to a request's memory.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/memory.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

enum class ScatterResult : uint8_t {
  kDone,
  kNoKey,        // a local key does not cover the memory, or the host has that no more
  kNotWritable,  // the memory may not be written
};

// Copies `payload`, if it has bytes, into `sges`, if these are not phantom, from their byte
// `offset` on; it must fit. Keys are looked at as they are needed: if the result is not kDone, only
// the part before the bad sge is written.
ScatterResult Scatter(const KeyTable& keys, DomainId domain, absl::Span<const Sge> sges, uint32_t offset,
                      absl::Span<const PayloadSlice> payload);

// Returns false if the host does not have all of that memory any more.
[[nodiscard]] bool CopyPayload(const KeyTable& keys, const Packet& packet, uint8_t* to);

}  // namespace tokamak::verbs::soft
