// The transport's bounds that others count on. docs/bounds.md has all bounds of the project.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::transport {

// Transfers that an endpoint serves at once, and that it pulls at once, unless its
// options say otherwise.
constexpr uint32_t kMaxTransfers = 1024;

// Of what an endpoint serves one peer may have this part.
constexpr uint32_t kPeerPart = 4;

// Bytes of one READ or WRITE request, and requests of one transfer at a time, as they may be
// chosen.
constexpr uint32_t kMinChunkSize = 4096;
constexpr uint32_t kMaxChunkSize = 1u << 30;
constexpr uint32_t kMaxChunksInFlight = 1024;

// Devices of an endpoint.
constexpr uint32_t kMaxRails = 4;

// A rail that fails may take this long to give back what was posted on it, before its queue pairs
// are dropped without that.
constexpr base::Duration kFlushGrace = base::Milliseconds(100);

// A rail that has failed is retried at this interval while its connection lives.
constexpr base::Duration kRejoinInterval = base::Seconds(5);

// Connections to an endpoint that one peer may have: one for each of its engines. Beyond, one
// without work gives way.
constexpr uint32_t kMaxInboundOfPeer = 128;

// Calls of one connection that we answer at once.
constexpr uint32_t kMaxCallsServed = 256;

// A connection that has been idle for this long gives up the window that it grew to.
constexpr base::Duration kWindowRest = base::Seconds(10);

// A connection over which nothing large was moved for this long gives its bulk queue pairs back.
constexpr base::Duration kBulkRest = base::Seconds(10);

// How long both sides wait for all queue pairs of a connection, unless their options say otherwise.
constexpr base::Duration kConnectDeadline = base::Seconds(5);

// How long a pull waits for anything to happen before it gives its owner up, unless the request
// says otherwise: a chunk that arrives, a READ that completes, an owner's word; READs and WRITEs of
// other pulls on the connection, with which it takes turns, count too.
constexpr base::Duration kPatience = base::Seconds(10);

// While an owner writes, which the puller's processor does not see, it says at this interval how
// far it is.
constexpr base::Duration kProgressInterval = base::Seconds(1);
static_assert(kProgressInterval * 4 <= kPatience,
              "a word that is late, or one that is lost with its connection, is no end");

// A transfer that was stopped may take this long to end in good order (requests in flight to
// finish, the owner to answer) before the hard proof is made: key revoked or connection closed.
constexpr base::Duration kDrainGrace = base::Milliseconds(500);

// The longest that a puller may hold a pin, whatever it asks for.
constexpr base::Duration kServeDeadline = base::Seconds(300);

}  // namespace tokamak::transport
