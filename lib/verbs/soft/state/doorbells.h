// Doorbells are the queue pairs that rang and have not been answered: a stack that owners' threads
// push to without a lock, and that the NIC takes as a whole.
//
// Law: a queue pair is listed at most once; whatever it posted before it rang is visible to who
// answers.
// Thread rule: Ring from any thread; Answer under the NIC's mutex.
#pragma once

#include <atomic>

#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/queue_pair_core.h"

namespace tokamak::verbs::soft {

class Doorbells final {
 public:
  // Returns false if it is listed already. It may not be dropped before Answer.
  bool Ring(QueuePairCore& queue_pair) {
    if (queue_pair.doorbell_rung.exchange(true, std::memory_order_acq_rel)) return false;
    QueuePairCore* head = top_.load(std::memory_order_relaxed);
    do {
      queue_pair.next_doorbell = head;
    } while (!top_.compare_exchange_weak(head, &queue_pair, std::memory_order_acq_rel, std::memory_order_relaxed));
    return true;
  }

  // Has all of them answer, in the order in which they rang.
  void Answer() REQUIRES_NIC_MUTEX {
    if (top_.load(std::memory_order_acquire) == nullptr) return;  // cheaper than an exchange
    QueuePairCore* first = InOrder(top_.exchange(nullptr, std::memory_order_acq_rel));
    while (first != nullptr) {
      QueuePairCore* const queue_pair = first;
      first = first->next_doorbell;
      // It may ring again from here on; earlier requests are visible.
      queue_pair->doorbell_rung.exchange(false, std::memory_order_acq_rel);
      queue_pair->Answer();
    }
  }

 private:
  // Turns a stack, which has the latest on top, round.
  static QueuePairCore* InOrder(QueuePairCore* last) {
    QueuePairCore* first = nullptr;
    while (last != nullptr) {
      QueuePairCore* const next = last->next_doorbell;
      last->next_doorbell = first;
      first = last;
      last = next;
    }
    return first;
  }

  std::atomic<QueuePairCore*> top_{nullptr};  // linked by next_doorbell
};

}  // namespace tokamak::verbs::soft
