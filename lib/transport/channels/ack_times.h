// AckTimes is the longest time in which peers of one rail acknowledged of late; it gives the ack
// timeout of the rail's next connections.
//
// A device reports a worst case, often by orders of magnitude: 268 ms for hardware that takes
// microseconds. This timeout follows the measured time from posting a control message to its
// completion. That includes every delay on the way (the device's queue, the links, a busy peer, our
// late loop), so it is never too short. A lost message counts with the timeout that it cost: over a
// slow or lossy link the next timeouts are longer, until that is forgotten.
//
// Law: kShortestAckTimeout <= ForNext() <= what the device's report suggests (SuitableAckTimeout),
// unless that is shorter.
#pragma once

#include <algorithm>

#include "lib/base/time.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

// Lower bound, the verbs' default. A peer may be a software NIC or rdma_rxe, which acknowledge on
// the machine's processors: under load they are late by tens of milliseconds though their last
// answers took microseconds.
constexpr base::Duration kShortestAckTimeout = verbs::ReliabilityOptions().ack_timeout;

// Factor on the longest measured time: the next may take longer than any before it.
constexpr int64_t kAckMargin = 8;

// Shortest time for which a measurement is remembered; the longest is twice that.
constexpr base::Duration kAckMemory = base::Seconds(60);

class AckTimes final {
 public:
  // Records that a message was acknowledged after `took`.
  void Note(base::Time now, base::Duration took) {
    Forget(now);
    latest_ = std::max(latest_, took);
  }

  // Returns the timeout for the next connection; `suitable`, which follows the device's report, if
  // nothing was measured of late.
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
  base::Duration before_;  // in the period before that
  base::Time began_;
};

}  // namespace tokamak::transport
