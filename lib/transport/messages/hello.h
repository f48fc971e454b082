// Hello is each side's description of itself when a queue pair is connected: the private data of
// the connection manager.
//
// A connection is several queue pairs: number 0 carries messages, the others bulk data,
// `bulk_queue_pairs` on each rail: those of rail r are r * bulk_queue_pairs + 1 and on. Each is
// connected by itself; `token` and `queue` say where it belongs. Sizes need not be equal: each side
// sends no more than the other can take.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tokamak::transport {

constexpr uint16_t kProtocolVersion = 10;
constexpr uint32_t kMaxBulkQueuePairs = 16;  // of one connection, on all its rails
constexpr uint32_t kMinReceiveSlots = 8;
constexpr uint32_t kMinFirstSlots = 4;        // a batch of credits, the reserved one and the probe's (credits.h)
constexpr uint32_t kMaxReceiveSlots = 32768;  // credits travel in 16 bits
constexpr uint32_t kMaxSlotSize = 256 * 1024;

struct Hello {
  uint16_t version = kProtocolVersion;
  uint8_t queue = 0;             // number in the connection: 0 messages, 1.. bulk
  uint8_t bulk_queue_pairs = 1;  // on each rail of the connection; the connecting side decides
  uint8_t reads_served = 0;      // READs that we answer at once, per queue pair
  bool immediate = false;        // true if our device takes writes with immediate
  uint8_t rails = 1;             // connecting side: its own; answer: those of the connection, at most as many
  uint8_t primary = 0;           // the rail of the messages
  uint32_t slot_size = 0;        // bytes of the messages we receive
  uint32_t first_slots = 0;      // posted receives: the peer's first credits
  uint32_t receive_slots = 0;    // most posted receives: the peer never has more credits
  uint32_t max_transfers = 0;    // that we serve this peer at once
  uint32_t max_calls = 0;        // that we answer at once
  uint64_t token = 0;            // the connection's name, drawn by the connecting side
};

// Returns the rail of a bulk queue pair, which is not 0.
inline uint32_t RailOf(const Hello& hello) { return (hello.queue - 1u) / hello.bulk_queue_pairs; }

constexpr size_t kHelloSize = 40;
static_assert(kHelloSize <= 56, "what IP connection management leaves to the application");

void EncodeHello(const Hello& hello, absl::Span<uint8_t> out);

// Returns whether it is a hello, of any version.
bool IsHello(absl::Span<const uint8_t> bytes);

// Decodes kHelloSize bytes or more: connection managers pad with zeros. kFailedPrecondition: the
// peer has another version or another protocol; the text names both sides' values.
// kInvalidArgument: values out of bounds.
absl::StatusOr<Hello> DecodeHello(absl::Span<const uint8_t> bytes);

}  // namespace tokamak::transport
