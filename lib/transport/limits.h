// Bounds of the transport that other rooms rely on. docs/bounds.md lists all bounds.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::transport {

// Served, and pulled, at once by default.
constexpr uint32_t kMaxTransfers = 1024;

// One peer gets at most 1/kPeerPart of what an endpoint serves.
constexpr uint32_t kPeerPart = 4;

// Bytes of one READ or WRITE request; requests of one transfer in flight.
constexpr uint32_t kMinChunkSize = 4096;
constexpr uint32_t kMaxChunkSize = 1u << 30;
constexpr uint32_t kMaxChunksInFlight = 1024;

constexpr uint32_t kMaxRails = 4;

// Time for a failed rail to flush its requests before its queue pairs are dropped.
constexpr base::Duration kFlushGrace = base::Milliseconds(100);

// Interval of a failed rail's retries.
constexpr base::Duration kRejoinInterval = base::Seconds(5);

// One per engine of the peer. Beyond, an idle one gives way.
constexpr uint32_t kMaxInboundOfPeer = 128;

// Connections of peers that have not proven themselves yet, and of these from one address. Beyond,
// the oldest, of that address or of all, gives way: an honest peer is through in a few round trips.
constexpr uint32_t kMaxNewcomers = 256;
constexpr uint32_t kMaxNewcomersOfPeer = 64;
static_assert(kMaxNewcomersOfPeer * kPeerPart <= kMaxNewcomers, "no address has them all");

// Calls of one connection answered at once.
constexpr uint32_t kMaxCallsServed = 256;

// Idle time after which a connection gives up the window that it grew to.
constexpr base::Duration kWindowRest = base::Seconds(10);

// Time without large transfers after which a connection gives its bulk queue pairs back.
constexpr base::Duration kBulkRest = base::Seconds(10);

// For all queue pairs of a connection, on either side, by default.
constexpr base::Duration kConnectDeadline = base::Seconds(5);

// Longest time that a pull waits without progress, by default. Progress is a chunk, a completed
// READ, a message of the owner;
// also READs and WRITEs of the connection's other pulls, as they take turns.
constexpr base::Duration kPatience = base::Seconds(10);

// Between a writing owner's reports; the puller's processor does not see WRITEs.
constexpr base::Duration kProgressInterval = base::Seconds(1);
static_assert(kProgressInterval * 4 <= kPatience,
              "a word that is late, or one that is lost with its connection, is no end");

// For a stopped transfer to end in good order (requests in flight, the owner's answer) before the
// hard proof: key revoked or connection closed.
constexpr base::Duration kDrainGrace = base::Milliseconds(500);

// Longest time for which a puller may hold a pin.
constexpr base::Duration kServeDeadline = base::Seconds(300);

}  // namespace tokamak::transport
