// Receives are the places for one queue pair's messages: its own, in order, or a shared queue's, of
// which it holds at most the one being filled.
//
// Thread rule: the NIC's mutex; Forget also on the owner's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "lib/verbs/soft/state/shared_receives.h"
#include "lib/verbs/soft/state/work_queue.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

class QueuePairCore;

class Receives final {
 public:
  Receives(NicState& nic_state, QueuePairCore& queue_pair);

  bool available() const REQUIRES_NIC_MUTEX { return shared_ != nullptr ? shared_->left() > 0 : oldest_ < own_.tail(); }

  // Returns the bytes of the next receive; one must be available.
  uint32_t next_length() const REQUIRES_NIC_MUTEX {
    return shared_ != nullptr ? shared_->next_length() : own_.at(oldest_).length;
  }

  // Takes the next receive, which must be available, as present().
  void Take() REQUIRES_NIC_MUTEX;
  const ReceiveSlot& present() const { return *present_; }

  // Completes present() with success.
  void Complete(const Completion& completion, bool solicited) REQUIRES_NIC_MUTEX;

  // Completes the oldest with `first` and flushes the others, except receives that the owner posts
  // meanwhile and those of a shared queue that are not being filled.
  void Flush(CompletionStatus first) REQUIRES_NIC_MUTEX;

  // Ends all without completions.
  void Forget() REQUIRES_NIC_MUTEX;

 private:
  void Push(const ReceiveSlot& slot, CompletionStatus status, const Completion& with,
            bool solicited) REQUIRES_NIC_MUTEX;

  NicState& nic_state_;
  QueuePairCore& queue_pair_;
  ReceiveQueue& own_;
  SharedReceives* const shared_;  // null: own_ is used
  uint64_t oldest_ = 0;           // the first in own_ that has not completed
  const ReceiveSlot* present_ = nullptr;
  ReceiveSlot taken_;            // of a shared queue
  std::vector<Sge> taken_sges_;  // of taken_
};

}  // namespace tokamak::verbs::soft
