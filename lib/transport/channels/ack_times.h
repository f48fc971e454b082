// AckTimes is how long the peers of one rail took to acknowledge of late, at the longest, and so
// what the ack time-out of its next connections may be.
//
// A device reports a worst case, often by orders of magnitude: 268 ms of hardware that takes
// microseconds. The time-out follows what is measured instead: from posting a control message to
// its completion, which holds all that may be on the way (the device's queue, the links, a peer
// that is busy, our loop that looks late), so it is never too short. A message that was lost counts
// with the time-out that it cost: over a link that loses packets or is slow the next time-outs are
// longer, until that is forgotten.
//
// Law: kShortestAckTimeout <= ForNext() <= what the device's report suggests (SuitableAckTimeout),
// wherever that is as long.
#pragma once

#include <algorithm>

#include "lib/base/time.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

// No measurement makes it shorter. A peer may be a software NIC, or rdma_rxe: these acknowledge
// with the machine's processors, after all else that those do, and a loaded one is late by tens of
// milliseconds though its last answers took microseconds. It is the verbs' own default.
constexpr base::Duration kShortestAckTimeout = verbs::ReliabilityOptions().ack_timeout;

// Times the longest that was measured: the next may take longer than any before it.
constexpr int64_t kAckMargin = 8;

// What was measured is remembered for this long at least, and for twice as long at most.
constexpr base::Duration kAckMemory = base::Seconds(60);

class AckTimes final {
 public:
  // A message was acknowledged after `took`.
  void Note(base::Time now, base::Duration took) {
    Forget(now);
    latest_ = std::max(latest_, took);
  }

  // `suitable`: by the device's report. Where nothing was measured of late, that.
  base::Duration ForNext(base::Time now, base::Duration suitable) {
    Forget(now);
    const base::Duration longest = std::max(latest_, before_);
    if (longest == base::Duration()) return suitable;
    return std::min(std::max(longest * kAckMargin, kShortestAckTimeout), suitable);
  }

 private:
  void Forget(base::Time now) {
    if (now - began_ < kAckMemory) return;
    before_ = now - began_ < kAckMemory * 2 ? latest_ : base::Duration();
    latest_ = base::Duration();
    began_ = now;
  }

  // None: nothing was measured.
  base::Duration latest_;  // since began_
  base::Duration before_;  // in the time before that
  base::Time began_;
};

}  // namespace tokamak::transport
