// Bounds of the transport that other rooms rely on. docs/bounds.md lists all bounds of the project.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::transport {

// Transfers that an endpoint serves at once, and pulls at once; the default of its options.
constexpr uint32_t kMaxTransfers = 1024;

// One peer gets at most 1/kPeerPart of what an endpoint serves.
constexpr uint32_t kPeerPart = 4;

// Range of the bytes of one READ or WRITE request, and of the requests of one transfer at a time.
constexpr uint32_t kMinChunkSize = 4096;
constexpr uint32_t kMaxChunkSize = 1u << 30;
constexpr uint32_t kMaxChunksInFlight = 1024;

// Devices of an endpoint.
constexpr uint32_t kMaxRails = 4;

// Time for a failed rail to give back its posted requests, before its queue pairs are dropped
// anyway.
constexpr base::Duration kFlushGrace = base::Milliseconds(100);

// Interval of retries of a failed rail while its connection lives.
constexpr base::Duration kRejoinInterval = base::Seconds(5);

// Connections of one peer to an endpoint: one for each of the peer's engines. Beyond that, an idle
// one gives way.
constexpr uint32_t kMaxInboundOfPeer = 128;

// Calls of one connection that we answer at once.
constexpr uint32_t kMaxCallsServed = 256;

// Idle time after which a connection gives up its grown window.
constexpr base::Duration kWindowRest = base::Seconds(10);

// Time without large transfers after which a connection gives its bulk queue pairs back.
constexpr base::Duration kBulkRest = base::Seconds(10);

// Time that both sides wait for all queue pairs of a connection; the default of their options.
constexpr base::Duration kConnectDeadline = base::Seconds(5);

// Time for which a pull waits for any progress before it gives its owner up; the default of the
// request. Progress is a chunk that arrives, a READ that completes, or a message of the owner;
// READs and WRITEs of other pulls on the connection count too, as it takes turns with them.
constexpr base::Duration kPatience = base::Seconds(10);

// Interval at which an owner that writes reports its progress, which the puller's processor does
// not see.
constexpr base::Duration kProgressInterval = base::Seconds(1);
static_assert(kProgressInterval * 4 <= kPatience,
              "a word that is late, or one that is lost with its connection, is no end");

// Time for a stopped transfer to end in good order (requests in flight finish, the owner answers)
// before the hard proof is made: key revoked or connection closed.
constexpr base::Duration kDrainGrace = base::Milliseconds(500);

// Longest time a puller may hold a pin, whatever it asks for.
constexpr base::Duration kServeDeadline = base::Seconds(300);

}  // namespace tokamak::transport
