// The transport's messages: a fixed 64-byte little-endian header and a bounded body,
// drawn in docs/transport.md.
//
// Both ends are the same program, but the peer is not trusted: Decode accepts only what Encode can
// have written. A field that a kind does not use must be zero on the wire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/generation.h"
#include "lib/base/object_id.h"
#include "lib/transport/limits.h"
#include "lib/transport/object_access.h"

namespace tokamak::transport {

enum class MessageKind : uint8_t {
  kTransfer = 1,   // puller: send me this object; by write, also where to
  kData = 2,       // owner: READ it from here
  kChunk = 3,      // owner: the next bytes, in the body
  kDone = 4,       // read: the puller has it all; write: the owner has written it all
  kCancel = 5,     // puller: stop this transfer, it will not touch the owner's memory any more; or drop this call
  kFail = 6,       // owner: this transfer or call ended without success; the body holds the reason
  kCredit = 7,     // receive slots given back, when no other message carries them
  kCall = 8,       // a request of an upper layer, in the body
  kReply = 9,      // its answer
  kProgress = 10,  // write: bytes that the owner has written, sent from time to time
  kRails = 11,     // owner: addresses of its rails, in the body (rail_messages.h)
  kRailDown = 12,  // both: all queue pairs of a rail are dropped; the puller's body: the writes that it waits for
  kRelease = 13,   // both: the slot that this message takes is not granted again: its sender needs fewer
};
const char* ToString(MessageKind kind);

enum MessageFlags : uint8_t {
  kMoreSlots = 128,  // any kind: further messages wait for credits, a larger window would serve
  kProtocolGiven =
      1,  // TRANSFER: chosen by the caller, or by experience, not by a table: the owner follows it if it can
};

struct RailKey {
  uint32_t rail = 0;
  uint32_t rkey = 0;
};

// Keys on other rails than the primary one, by rising rail.
struct RailKeys {
  uint32_t count = 0;
  std::array<RailKey, kMaxRails - 1> keys = {};
};

// Memory that the receiver of the message may reach.
struct RemoteRange {
  uint64_t address = 0;
  uint32_t rkey = 0;      // on the primary rail
  RailKeys further = {};  // for the same memory
};

// A decoded header.
struct Header {
  MessageKind kind = MessageKind::kCredit;
  Protocol protocol = Protocol::kAuto;
  uint8_t flags = 0;
  absl::StatusCode status = absl::StatusCode::kOk;  // FAIL
  uint16_t credits = 0;                             // any kind
  uint32_t deadline_ms = 0;                         // TRANSFER, CALL: left for the asker; DATA: left to read
  uint64_t transfer = 0;  // transfers and calls: the asker's number, from 1 up, never used twice
  ObjectSize size;        // TRANSFER: as the puller expects it; DATA, CHUNK
  base::ObjectId object;  // TRANSFER
  base::Generation generation = base::kNoGeneration;  // TRANSFER: of the object
  uint64_t offset = 0;                                // CHUNK; PROGRESS: bytes written by this transfer
  uint64_t arrived = 0;  // TRANSFER, PROGRESS, FAIL: bytes from the start that are certainly in place
  RemoteRange remote;    // DATA; TRANSFER by write
  uint32_t rail = 0;     // RAIL_DOWN
};

struct Message {
  Header header;
  absl::Span<const uint8_t> body;  // CHUNK, FAIL, CALL, REPLY, RAILS, RAIL_DOWN; points into the decoded bytes
};

// The end of a share of a write on a bulk queue pair, in 32 bits: the transfer, the share, and the
// number of shares. A share is every `shares`-th chunk, from chunk `share` on; all of it was
// written before on that queue pair.
struct Note {
  static constexpr uint32_t kNumberBits = 24;
  static constexpr uint32_t kNumberMask = (1u << kNumberBits) - 1;
  static constexpr uint32_t kGreeting = 0;  // the active side's first message: some networks want it to send first
  static constexpr uint32_t kMaxShares = 16;

  uint32_t number = 0;  // low kNumberBits of the transfer's; never 0 for a write
  uint32_t share = 0;   // below kMaxShares
  uint32_t shares = 1;  // 1 to kMaxShares
  uint32_t Pack() const { return (shares - 1) << 28 | share << kNumberBits | number; }
  static Note Unpack(uint32_t value) {
    return {value & kNumberMask, value >> kNumberBits & (kMaxShares - 1), (value >> 28) + 1};
  }
};

constexpr size_t kHeaderSize = 64;
constexpr size_t kVersionSize = 16;      // begins the body of a TRANSFER: generation, and what has arrived of it
constexpr size_t kRemoteRangeSize = 16;  // follows it in a TRANSFER by write; then come further keys
constexpr size_t kRailKeySize = 8;       // of a further key, also in DATA
constexpr size_t kMaxFailText = 192;     // bytes of a FAIL's body
constexpr size_t kMinSlotSize = 512;     // whatever the options say, these fit: see static_assert
constexpr uint64_t kMaxObjectSize = uint64_t{1} << 48;  // bytes of data, and of metadata: sums cannot overflow
static_assert(kHeaderSize + kMaxFailText <= kMinSlotSize &&
                  kHeaderSize + kVersionSize + kRemoteRangeSize + (kMaxRails - 1) * kRailKeySize <= kMinSlotSize,
              "every control message fits the smallest slot");

// Writes the header, with `body_size` in it, into the first kHeaderSize bytes of `out`. TRANSFER
// and DATA have fields in their body: use EncodeMessage.
void EncodeHeader(const Header& header, size_t body_size, uint8_t* out);

// Writes header and body; returns their bytes. `out` must hold MessageSize().
size_t EncodeMessage(const Header& header, absl::Span<const uint8_t> body, absl::Span<uint8_t> out);
size_t MessageSize(const Header& header, size_t body_size);

// Decodes one received message. kInvalidArgument: a protocol violation, named in the text.
absl::StatusOr<Message> DecodeMessage(absl::Span<const uint8_t> bytes);

// True for a TRANSFER that names the puller's memory.
inline bool CarriesRange(const Header& header) {
  return header.kind == MessageKind::kTransfer && header.protocol == Protocol::kWrite && header.size.total() > 0;
}

}  // namespace tokamak::transport
