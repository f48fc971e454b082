// A packet as a record in shared memory, or as a message of a Unix socket: its source, and its
// bytes as on a wire (wire.h), except for an ICRC: memory damages nothing.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kRecordOrigin = 40;  // bytes before the wire's
constexpr uint32_t kMaxRecord = kRecordOrigin + kMaxDatagram;

// Returns the bytes of the record of `packet`.
uint32_t RecordLength(const Packet& packet);

// Writes it to `out`, which has room for that many bytes, as coming from `source`. Payload without
// memory becomes zero bytes.
void WriteRecord(const Packet& packet, const Address& source, uint8_t* out);

// Reads a record; the payload of `packet` points into it. Returns false if it is none. Bytes after
// it are allowed, up to the next multiple of 8.
[[nodiscard]] bool ReadRecord(absl::Span<const uint8_t> record, Packet* packet);

}  // namespace tokamak::verbs::soft
