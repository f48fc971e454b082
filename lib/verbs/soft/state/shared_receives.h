// SharedReceives is a shared receive queue in memory: its owner posts, and the responders of many
// queue pairs take.
//
// Taking copies a receive out, so the ring is used in order although messages of different queue
// pairs end in any order. Polling releases slots by count: the completion of the n-th receive that
// is over releases the first n.
//
// Law: over <= taken <= posted, and posted - released <= depth.
// Thread rule: posting on the owner's thread, the rest under the NIC's mutex.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/check.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/state/memory.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/work_queue.h"

namespace tokamak::verbs {
class SharedReceiveQueue;
}

namespace tokamak::verbs::soft {

class SharedReceives final {
 public:
  // Device events name `handle`.
  SharedReceives(uint32_t depth, uint32_t max_sges, DomainId domain, const SharedReceiveQueue* handle)
      : queue(depth, max_sges, 0), domain_(domain), handle_(handle) {}

  DomainId domain() const { return domain_; }
  const SharedReceiveQueue* handle() const { return handle_; }

  // True if `loop` is the first queue pair's, which all queue pairs of the shared queue must have.
  bool BelongsTo(base::EventLoop& loop) REQUIRES_NIC_MUTEX {
    if (loop_ == nullptr) loop_ = &loop;
    return loop_ == &loop;
  }

  uint64_t left() const REQUIRES_NIC_MUTEX { return closed_ ? 0 : queue.tail() - taken_; }

  // Returns the bytes of the oldest receive; one must be left.
  uint32_t next_length() REQUIRES_NIC_MUTEX { return queue.at(taken_).length; }

  // Copies the oldest receive, which must be left, to `to`, whose sges have room for kMaxSges.
  void Take(ReceiveSlot* to) REQUIRES_NIC_MUTEX {
    DCHECK_GT(left(), 0u);
    const ReceiveSlot& oldest = queue.at(taken_++);
    Sge* const sges = to->sges;
    *to = oldest;
    to->sges = sges;
    std::copy_n(oldest.sges, oldest.sge_count, sges);
  }

  // Ends a receive that was taken, with or without a completion. Polling it releases up to the
  // count returned.
  uint64_t Over() REQUIRES_NIC_MUTEX { return ++over_; }

  void Arm(uint64_t limit) REQUIRES_NIC_MUTEX { limit_ = limit; }

  // True once after each Arm: when fewer than its limit are left.
  bool RanLow() REQUIRES_NIC_MUTEX {
    if (left() >= limit_) return false;
    limit_ = 0;
    return true;
  }

  // Ends it when the owner drops it.
  void Close() REQUIRES_NIC_MUTEX {
    closed_ = true;
    limit_ = 0;
  }

  ReceiveQueue queue;

 private:
  const DomainId domain_;
  const SharedReceiveQueue* const handle_;
  base::EventLoop* loop_ GUARDED_BY_NIC_MUTEX = nullptr;
  uint64_t taken_ GUARDED_BY_NIC_MUTEX = 0;
  uint64_t over_ GUARDED_BY_NIC_MUTEX = 0;
  uint64_t limit_ GUARDED_BY_NIC_MUTEX = 0;
  bool closed_ GUARDED_BY_NIC_MUTEX = false;
};

}  // namespace tokamak::verbs::soft
