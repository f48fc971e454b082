// Counts of a UDP fabric.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/counter.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

// Why a packet was dropped.
enum class UdpDrop : uint8_t {
  kMalformed,     // in a way that `malformed` counts
  kIcrc,          // damaged, or its sender computes the ICRC over other bytes than it sends
  kTruncated,     // longer than any packet
  kSocketBuffer,  // the kernel had no room: the window is too large for the buffer, or this machine too slow
  kUnreachable,   // sent: no route or no neighbour
  kTooLong,       // sent: too long for the path or the interface
  kRefused,       // sent: by a firewall, or for a reason that the kernel hides
};
constexpr uint32_t kUdpDrops = 7;
const char* ToString(UdpDrop drop);

using base::Counter;

// Thread rule: the fabric's loop counts, any thread reads.
struct UdpCounters {
  Counter packets_sent;
  Counter bytes_sent;  // BTH to ICRC
  Counter send_calls;
  Counter packets_received;  // good
  Counter bytes_received;
  Counter receive_calls;
  Counter identifications_unexpected;  // good, but with an unexpected IPv4 identification: weakly checked
  Counter busy;                        // times that the kernel took no more
  std::array<Counter, kUdpDrops> dropped;
  std::array<Counter, kDecodeResults> malformed;

  uint64_t Dropped(UdpDrop drop) const { return dropped[static_cast<uint32_t>(drop)].value(); }
  void Drop(UdpDrop drop, uint64_t packets) { dropped[static_cast<uint32_t>(drop)].Add(packets); }
};

}  // namespace tokamak::verbs::soft
