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
  kNoKey,  // a local key does not cover the memory, or the host has it no more
  kNotWritable,
};

// Copies `payload` into `sges`, unless they are phantom, from their byte `offset` on; it must fit.
// Keys are looked at as they are needed: on failure the part before the bad sge is written.
ScatterResult Scatter(const KeyTable& keys, DomainId domain, absl::Span<const Sge> sges, uint32_t offset,
                      absl::Span<const PayloadSlice> payload);

// Returns false if the host lacks a part of that memory.
[[nodiscard]] bool CopyPayload(const KeyTable& keys, const Packet& packet, uint8_t* to);

}  // namespace tokamak::verbs::soft
