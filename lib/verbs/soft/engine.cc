#include "lib/verbs/soft/engine.h"

#include <utility>

#include "lib/verbs/soft/queue_pair_core.h"

namespace tokamak::verbs::soft {

void QueuePairList::Add(QueuePairCore& queue_pair) {
  QueuePairLink& link = queue_pair.*link_;
  if (link.listed) return;
  link = {true, nullptr, last_};
  (last_ == nullptr ? first_ : (last_->*link_).next) = &queue_pair;
  last_ = &queue_pair;
  ++size_;
}

void QueuePairList::AddFirst(QueuePairCore& queue_pair) {
  QueuePairLink& link = queue_pair.*link_;
  if (link.listed) return;
  link = {true, first_, nullptr};
  (first_ == nullptr ? last_ : (first_->*link_).previous) = &queue_pair;
  first_ = &queue_pair;
  ++size_;
}

QueuePairCore* QueuePairList::TakeFirst() {
  QueuePairCore* first = first_;
  if (first != nullptr) Remove(*first);
  return first;
}

void QueuePairList::Remove(QueuePairCore& queue_pair) {
  QueuePairLink& link = queue_pair.*link_;
  if (!link.listed) return;
  (link.previous == nullptr ? first_ : (link.previous->*link_).next) = link.next;
  (link.next == nullptr ? last_ : (link.next->*link_).previous) = link.previous;
  link = {};
  --size_;
}

Engine::Engine(base::EventLoop& loop, base::Trace& trace, uint32_t trace_node, base::Random key_random,
               std::function<void()> wake_up, base::Task on_timer)
    : keys(key_random),
      alarms(loop, std::move(wake_up), std::move(on_timer)),
      ready(&QueuePairCore::ready_),
      read_waiters(&QueuePairCore::waits_for_reads_),
      first_read_waiters(&QueuePairCore::waits_for_first_read_),
      send_waiters(&QueuePairCore::waits_to_send_),
      touched(&QueuePairCore::touched_),
      stall_(alarms, [this] { OnStall(); }),
      trace_(trace),
      tracing_(dynamic_cast<base::NoTrace*>(&trace) == nullptr),
      trace_node_(trace_node) {}

void Engine::OnStall() {
  if (send_waiters.empty()) return;
  if (sends.given_back() != given_back_seen_) {
    given_back_seen_ = sends.given_back();
    stall_.Set(kSendStall);
    return;
  }
  sends.Stall();
  while (QueuePairCore* waiter = send_waiters.TakeFirst()) ready.Add(*waiter);
}

}  // namespace tokamak::verbs::soft
