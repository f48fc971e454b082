// StartedRequests are the send requests of a requester that have begun and not completed, the first
// of those posted.
//
// A request gets its sequences when it starts: as many as it has packets or, for a READ, its answer
// has. A fence is waited for here.
//
// Requests without a packet (binding and invalidating windows) are carried out once, when they
// start, and then wait for those before them to complete.
//
// Law: oldest() <= started() <= posted().
// Law: requests complete in order, each once.
// Thread rule: under the NIC's mutex.
#pragma once

#include <cstdint>

#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "lib/verbs/soft/state/work_queue.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

class ConnectedCore;

class StartedRequests final {
 public:
  StartedRequests(NicState& nic_state, ConnectedCore& queue_pair);

  // Gives the next request that starts this sequence.
  void Start(uint64_t sequence) REQUIRES_NIC_MUTEX { next_ = sequence; }

  // Indexes: the oldest; one past the last started; one past the last posted.
  uint64_t oldest() const REQUIRES_NIC_MUTEX { return oldest_; }
  uint64_t started() const REQUIRES_NIC_MUTEX { return started_; }
  uint64_t posted() const REQUIRES_NIC_MUTEX { return sends_.tail(); }
  SendSlot& at(uint64_t index) const REQUIRES_NIC_MUTEX { return sends_.at(index); }

  // READs and atomics that have started and not completed.
  uint32_t unanswered() const REQUIRES_NIC_MUTEX { return unanswered_; }

  // Returns false if no other is posted, or the next waits at its fence.
  bool StartNext() REQUIRES_NIC_MUTEX;

  // Completes the oldest, which has been answered, and those without a packet right behind it.
  void CompleteOldest() REQUIRES_NIC_MUTEX;

  // Completes those without a packet that have none before them.
  void CompleteLocal() REQUIRES_NIC_MUTEX;

  // Completes all posted: the oldest with `first`, the others flushed. See Forget.
  void Flush(CompletionStatus first, uint32_t provider_code, uint64_t sequence) REQUIRES_NIC_MUTEX;

  // Ends all posted, not those that the owner posts meanwhile, without completions. The next starts
  // at `sequence`.
  void Forget(uint64_t sequence) REQUIRES_NIC_MUTEX { ForgetUpTo(sends_.tail(), sequence); }

 private:
  bool MayStart(const SendSlot& slot) const REQUIRES_NIC_MUTEX;
  bool CarryOut(const SendSlot& slot) REQUIRES_NIC_MUTEX;
  void Complete(uint64_t index, CompletionStatus status, uint32_t provider_code) REQUIRES_NIC_MUTEX;
  void ForgetUpTo(uint64_t tail, uint64_t sequence) REQUIRES_NIC_MUTEX;

  NicState& nic_state_;
  ConnectedCore& queue_pair_;
  SendQueue& sends_;
  uint64_t oldest_ = 0;
  uint64_t started_ = 0;
  uint64_t next_ = 0;  // the sequence of the next that starts
  uint32_t unanswered_ = 0;
};

}  // namespace tokamak::verbs::soft
