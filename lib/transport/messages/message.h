// The transport's messages: a fixed 64-byte little-endian header and a bounded body, drawn in
// docs/transport.md.
//
// The peer is not trusted: Decode accepts only what Encode can have written; unused fields are
// zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/generation.h"
#include "lib/base/object_id.h"
#include "lib/security/cipher_state.h"
#include "lib/transport/limits.h"
#include "lib/transport/object_access.h"

namespace tokamak::transport {

enum class MessageKind : uint8_t {
  kTransfer = 1,   // puller: send me this object; by write, also where to
  kData = 2,       // owner: READ it from here
  kChunk = 3,      // owner: next bytes
  kDone = 4,       // read: the puller has it all; write: the owner has written it
  kCancel = 5,     // puller: stop this transfer, it touches the owner's memory no more; or drop this call
  kFail = 6,       // owner: a transfer or call failed; body: reason
  kCredit = 7,     // receive slots given back, without another message
  kCall = 8,       // request of an upper layer
  kReply = 9,      // its answer
  kProgress = 10,  // write: bytes written so far
  kRails = 11,     // owner: its rails (rail_messages.h)
  kRailDown = 12,  // both: all queue pairs of a rail are dropped; puller's body: writes that it waits for
  kRelease = 13,   // both: this message's slot is not granted again
};
const char* ToString(MessageKind kind);

enum MessageFlags : uint8_t {
  kMoreSlots = 128,    // any kind: further messages wait for credits
  kProtocolGiven = 1,  // TRANSFER: not by a table: the owner follows if it can
};

struct RailKey {
  uint32_t rail = 0;
  uint32_t rkey = 0;
};

// By rising rail, without the primary one.
struct RailKeys {
  uint32_t count = 0;
  std::array<RailKey, kMaxRails - 1> keys = {};
};

// Memory that the message's receiver may reach.
struct RemoteRange {
  uint64_t address = 0;
  uint32_t rkey = 0;      // on the primary rail
  RailKeys further = {};  // for the same memory
};

struct Header {
  MessageKind kind = MessageKind::kCredit;
  Protocol protocol = Protocol::kAuto;
  uint8_t flags = 0;
  absl::StatusCode status = absl::StatusCode::kOk;    // FAIL
  uint16_t credits = 0;                               // any kind
  uint32_t deadline_ms = 0;                           // TRANSFER, CALL: left for the asker; DATA: left to read
  uint64_t transfer = 0;                              // asker's number, from 1 up, never used twice
  ObjectSize size;                                    // TRANSFER: expected; DATA, CHUNK
  base::ObjectId object;                              // TRANSFER
  base::Generation generation = base::kNoGeneration;  // TRANSFER
  uint64_t offset = 0;                                // CHUNK; PROGRESS: bytes written by this transfer
  uint64_t arrived = 0;  // TRANSFER, PROGRESS, FAIL: bytes from the start certainly in place
  RemoteRange remote;    // DATA; TRANSFER by write
  uint32_t rail = 0;     // RAIL_DOWN
};

struct Message {
  Header header;
  absl::Span<const uint8_t> body;  // CHUNK, FAIL, CALL, REPLY, RAILS, RAIL_DOWN; in the decoded bytes
};

// The end of a share of a write, 32 bits on its bulk queue pair: immediate of the last WRITE, or a
// SEND after it. A share is every `shares`-th chunk, from chunk `share` on.
struct Note {
  static constexpr uint32_t kNumberBits = 24;
  static constexpr uint32_t kNumberMask = (1u << kNumberBits) - 1;
  static constexpr uint32_t kGreeting = 0;  // some networks want the active side to send first
  static constexpr uint32_t kMaxShares = 16;

  uint32_t number = 0;  // low kNumberBits of the transfer's; never 0
  uint32_t share = 0;   // below kMaxShares
  uint32_t shares = 1;  // 1 to kMaxShares
  uint32_t Pack() const { return (shares - 1) << 28 | share << kNumberBits | number; }
  static Note Unpack(uint32_t value) {
    return {value & kNumberMask, value >> kNumberBits & (kMaxShares - 1), (value >> 28) + 1};
  }
};

constexpr size_t kHeaderSize = 64;
constexpr size_t kVersionSize = 16;      // begins a TRANSFER's body: generation, bytes arrived
constexpr size_t kRemoteRangeSize = 16;  // follows in a TRANSFER by write; then further keys
constexpr size_t kRailKeySize = 8;       // of a further key, also in DATA
constexpr size_t kMaxFailText = 192;     // bytes of a FAIL's body
constexpr size_t kMinSlotSize = 512;     // bytes; see kMinMessage
constexpr size_t kMinMessage = kMinSlotSize - security::kTagSize;  // bytes that fit into any slot, sealed
constexpr uint64_t kMaxObjectSize = uint64_t{1} << 48;  // bytes of data, and of metadata: sums cannot overflow
static_assert(kHeaderSize + kMaxFailText <= kMinMessage &&
                  kHeaderSize + kVersionSize + kRemoteRangeSize + (kMaxRails - 1) * kRailKeySize <= kMinMessage,
              "every control message fits the smallest slot");

// Writes the first kHeaderSize bytes of `out`. Not for TRANSFER and DATA, whose bodies have fields.
void EncodeHeader(const Header& header, size_t body_size, uint8_t* out);

// Returns the bytes written into `out`, which has MessageSize().
size_t EncodeMessage(const Header& header, absl::Span<const uint8_t> body, absl::Span<uint8_t> out);
size_t MessageSize(const Header& header, size_t body_size);

// kInvalidArgument: a protocol violation, named in the text.
absl::StatusOr<Message> DecodeMessage(absl::Span<const uint8_t> bytes);

// True for a TRANSFER that names the puller's memory.
inline bool CarriesRange(const Header& header) {
  return header.kind == MessageKind::kTransfer && header.protocol == Protocol::kWrite && header.size.total() > 0;
}

}  // namespace tokamak::transport
