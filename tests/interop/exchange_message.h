// The messages between the two ends of an Exchange: fixed messages of 64 bytes, little-endian, each
// in one SEND.
//
//   0       4      5       6   8        12      16     24        32
//  | magic | kind | flags | 0 | length | count | seed | address |
//   32     36       40      48
//  | rkey | result | value | window | 0
//
// The peer may be anything: Decode looks at every field, and sizes are checked again against memory
// before they are used.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tokamak::interop {

constexpr uint32_t kMessageBytes = 64;
using MessageBytes = std::array<uint8_t, kMessageBytes>;

enum class MessageKind : uint8_t {
  kHello,      // address, rkey, window; flags: what the device has
  kClear,      // fill the beginning of the window with kClearByte
  kFill,       // write patterns of `count` pieces of `length` bytes into the window
  kExpect,     // clear, post receives for `count` coming messages of `length` bytes; value: first immediate
  kCheck,      // the window has these patterns, and kClearByte behind them
  kSetValue,   // value into the window's first 8 bytes, native
  kTellValue,  // reply with them
  kYourTurn,   // you ask from now on
  kEnd,
  kReply,  // to all of these
};
constexpr uint8_t kLastKind = static_cast<uint8_t>(MessageKind::kReply);

enum MessageFlags : uint8_t {
  kHasAtomics = 1,
  kHasImmediate = 2,
  kWithImmediate = 4,  // kExpect: the messages carry immediates
  kByWrite = 8,        // kExpect: they are WRITEs into the window
  kAllFlags = 15,
};

enum class MessageResult : uint32_t {
  kFine,
  kWrongByte,       // value: its offset in the window
  kWrongLength,     // value: the length that came
  kWrongImmediate,  // value: that which came, or kNoImmediate
  kRefused,         // it does not fit, or violates the protocol now
};
constexpr uint32_t kLastResult = static_cast<uint32_t>(MessageResult::kRefused);
constexpr uint64_t kNoImmediate = uint64_t{1} << 32;

struct Message {
  MessageKind kind = MessageKind::kReply;
  uint8_t flags = 0;
  uint32_t length = 0;
  uint32_t count = 0;
  uint64_t seed = 0;
  uint64_t address = 0;
  uint32_t rkey = 0;
  MessageResult result = MessageResult::kFine;
  uint64_t value = 0;
  uint64_t window = 0;  // bytes
};

MessageBytes Encode(const Message& message);
// kInvalidArgument for anything that Encode does not make.
absl::StatusOr<Message> Decode(absl::Span<const uint8_t> bytes);

}  // namespace tokamak::interop
