// AckTimes is the longest time in which peers of one rail acknowledged of late; it gives the ack
// timeout of the rail's next connections.
//
// A device's report is a worst case, often by orders of magnitude. This follows the measured time
// from posting a control message to its completion, with every delay on the way, so it is never too
// short. A lost message counts with the timeout that it cost.
//
// Law: kShortestAckTimeout <= ForNext() <= SuitableAckTimeout, unless that is shorter.
#pragma once

#include <algorithm>

#include "lib/base/time.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

// The verbs' default. Software peers (rdma_rxe, ours) acknowledge late under load, by tens of
// milliseconds.
constexpr base::Duration kShortestAckTimeout = verbs::ReliabilityOptions().ack_timeout;

constexpr int64_t kAckMargin = 8;  // times the longest that was measured

// A measurement is remembered for this to twice this.
constexpr base::Duration kAckMemory = base::Seconds(60);

class AckTimes final {
 public:
  void Note(base::Time now, base::Duration took) {
    Forget(now);
    latest_ = std::max(latest_, took);
  }

  // Returns the next connection's timeout; `suitable` if nothing was measured of late.
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

  // None: not measured.
  base::Duration latest_;  // since began_
  base::Duration before_;  // in the period before
  base::Time began_;
};

}  // namespace tokamak::transport
