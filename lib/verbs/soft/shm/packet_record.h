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

// Writes RecordLength bytes to `out`, as coming from `source`. Payload without memory becomes
// zeros.
void WriteRecord(const Packet& packet, const Address& source, uint8_t* out);

// Reads a record; the payload of `packet` points into it. Returns false if it is none. Bytes after
// it are allowed, up to the next multiple of 8.
[[nodiscard]] bool ReadRecord(absl::Span<const uint8_t> record, Packet* packet);

}  // namespace tokamak::verbs::soft
