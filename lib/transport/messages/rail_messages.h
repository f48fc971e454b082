// The bodies of RAILS and RAIL_DOWN, drawn in docs/transport.md. Decoding accepts only what
// encoding can have written.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/transport/messages/message.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

// The services of a connection's rails, at least two, by rail.
std::vector<uint8_t> EncodeRails(absl::Span<const verbs::Address> rails);
absl::StatusOr<std::vector<verbs::Address>> DecodeRails(absl::Span<const uint8_t> body);

// A write that the puller waits for, and its notes that have come.
struct WantedWrite {
  uint64_t transfer = 0;
  uint32_t shares_seen = 0;  // bits
};

// Writes of one puller on a connection with several rails.
constexpr size_t kMaxWantedWrites = 32;

// By rising transfer, at most kMaxWantedWrites.
std::vector<uint8_t> EncodeWanted(absl::Span<const WantedWrite> writes);
absl::StatusOr<std::vector<WantedWrite>> DecodeWanted(absl::Span<const uint8_t> body);

}  // namespace tokamak::transport
