// What a UDP fabric counts, so that an operator can see why RDMA is slow or silent.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/counter.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

// Why a packet was dropped here.
enum class UdpDrop : uint8_t {
  // Received:
  kMalformed,     // `malformed` says in which way
  kIcrc,          // damaged on the way, or its sender computes the ICRC over something else than it sends
  kTruncated,     // longer than any packet
  kSocketBuffer,  // the kernel had no room: the window is too large for the buffer, or this machine too slow
  // Sent:
  kUnreachable,  // no route or no neighbour
  kTooLong,      // for the path, or for the interface
  kRefused,      // by a firewall, or for a reason that the kernel does not say
};
constexpr uint32_t kUdpDrops = 7;
const char* ToString(UdpDrop drop);

using base::Counter;

// Thread rule: the fabric's loop counts, any thread reads.
struct UdpCounters {
  Counter packets_sent;
  Counter bytes_sent;  // UDP payload: BTH to ICRC
  Counter send_calls;
  Counter packets_received;  // good ones
  Counter bytes_received;
  Counter receive_calls;
  Counter identifications_unexpected;  // good ones, but with an IPv4 identification out of the blue: weakly checked
  Counter busy;                        // the kernel took no more for the moment
  std::array<Counter, kUdpDrops> dropped;
  std::array<Counter, kDecodeResults> malformed;

  uint64_t Dropped(UdpDrop drop) const { return dropped[static_cast<uint32_t>(drop)].value(); }
  void Drop(UdpDrop drop, uint64_t packets) { dropped[static_cast<uint32_t>(drop)].Add(packets); }
};

}  // namespace tokamak::verbs::soft
