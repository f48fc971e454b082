// A packet as a record in shared memory or a message of a Unix socket: its source, and its wire
// bytes (wire.h) without ICRC, as memory damages nothing.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kRecordOrigin = 40;  // before the wire's bytes
constexpr uint32_t kMaxRecord = kRecordOrigin + kMaxDatagram;

uint32_t RecordLength(const Packet& packet);

// Writes RecordLength bytes to `out`. Payload without memory is zeros.
void WriteRecord(const Packet& packet, const Address& source, uint8_t* out);

// Points the payload of `packet` into the record; ignores bytes after it, up to a multiple of 8.
// Returns false if it is none.
[[nodiscard]] bool ReadRecord(absl::Span<const uint8_t> record, Packet* packet);

}  // namespace tokamak::verbs::soft
