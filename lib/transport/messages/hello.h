// Hello is each side's description of itself when a queue pair is connected: the private data of
// the connection manager.
//
// Queue pair 0 of a connection carries messages; bulk ones of rail r begin at r * bulk_queue_pairs
// + 1. `token` and `queue` say where each belongs. A side sends no more than the other can take.
//
// Where peers are authenticated, the hello of queue pair 0 names the cluster's secret, and those of
// bulk queue pairs have a proof that they belong to the connection. A hello itself is believed by
// nobody: the handshake (peer_handshake.h) covers both sides' byte for byte.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/security/cluster_secret.h"
#include "lib/security/connection_keys.h"

namespace tokamak::transport {

constexpr uint16_t kProtocolVersion = 11;
constexpr uint32_t kMaxBulkQueuePairs = 16;  // of a connection, on all its rails
constexpr uint32_t kMinReceiveSlots = 8;
constexpr uint32_t kMinFirstSlots = 4;        // a batch, the reserved one and the probe's (credits.h)
constexpr uint32_t kMaxReceiveSlots = 32768;  // credits travel in 16 bits
constexpr uint32_t kMaxSlotSize = 256 * 1024;

struct Hello {
  uint16_t version = kProtocolVersion;
  uint8_t queue = 0;             // in the connection: 0 messages, 1.. bulk
  uint8_t bulk_queue_pairs = 1;  // per rail; the connecting side decides
  uint8_t reads_served = 0;      // READs served at once, per queue pair
  bool immediate = false;        // our device takes writes with immediate
  uint8_t rails = 1;             // connecting side: its own; answer: the connection's
  uint8_t primary = 0;           // of the messages
  uint64_t token = 0;            // the connection's name, drawn by the connecting side

  // Queue pair 0.
  uint32_t slot_size = 0;      // bytes of the messages we receive
  uint32_t first_slots = 0;    // posted receives: the peer's first credits
  uint32_t receive_slots = 0;  // most posted receives, or credits of the peer
  uint32_t max_transfers = 0;  // served to this peer at once
  uint32_t max_calls = 0;      // answered at once
  security::SecretId secret;   // of the handshake; of no secret: there is none
  bool seals = false;          // with a secret: messages are to be sealed; answer: they are
  bool aes = false;            // with a secret: our processor has instructions for AES; answer: both have

  // The others, where peers are authenticated.
  uint32_t attempt = 0;  // of connecting this queue pair, from 1; 0: no proof
  security::Proof proof = {};
};

// Returns the rail of a bulk queue pair.
inline uint32_t RailOf(const Hello& hello) { return (hello.queue - 1u) / hello.bulk_queue_pairs; }

constexpr size_t kHelloSize = 52;  // as much as rdma_cm leaves to us (verbs/ibv/cm/connection_rules.h)

void EncodeHello(const Hello& hello, absl::Span<uint8_t> out);

// Returns whether it is a hello, of any version.
bool IsHello(absl::Span<const uint8_t> bytes);

// Decodes kHelloSize bytes or more: connection managers pad. kFailedPrecondition: another version
// or protocol; the text names both. kInvalidArgument: values out of bounds.
absl::StatusOr<Hello> DecodeHello(absl::Span<const uint8_t> bytes);

}  // namespace tokamak::transport
