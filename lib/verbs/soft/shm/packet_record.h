// A packet as a record in memory that processes share, or as a message of a Unix socket: where it
// came from, and its bytes as on a wire (wire.h), but for an ICRC: memory damages nothing.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kRecordOrigin = 40;  // bytes before those of the wire
constexpr uint32_t kMaxRecord = kRecordOrigin + kMaxDatagram;

// How many bytes the record of `packet` has.
uint32_t RecordLength(const Packet& packet);

// Writes it to `out`, which has room for that many; `source` is where the packet comes from.
// Payload without memory becomes zero bytes.
void WriteRecord(const Packet& packet, const Address& source, uint8_t* out);

// Reads a record; the payload of `packet` points into it. False: it is none. Bytes after it are
// allowed, up to the next multiple of 8.
[[nodiscard]] bool ReadRecord(absl::Span<const uint8_t> record, Packet* packet);

}  // namespace tokamak::verbs::soft
