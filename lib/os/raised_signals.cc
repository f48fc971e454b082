#include "lib/os/raised_signals.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::os {

class RaisedSignals::Entry final {
 public:
  explicit Entry(base::Task t) : task(std::move(t)) {}

  base::Task task;
  std::atomic<bool> raised{false};
  Entry* next = nullptr;  // belongs to the thread that set `raised`, then to the stack
  bool dropped = false;   // loop's thread only
};

RaisedSignals::~RaisedSignals() {
  for (Entry* entry = TakeAll(); entry != nullptr;) {
    CHECK(entry->dropped) << "a signal outlives its loop";
    delete std::exchange(entry, entry->next);
  }
}

RaisedSignals::Entry* RaisedSignals::Make(base::Task task) { return new Entry(std::move(task)); }

void RaisedSignals::Drop(Entry* entry) {
  entry->dropped = true;
  if (entry == running_) return;  // Run frees it
  if (entry->raised.load(std::memory_order_relaxed)) {
    const base::Task dropped = std::exchange(entry->task, nullptr);
    return;  // Run frees it
  }
  delete entry;
}

bool RaisedSignals::Raise(Entry* entry) {
  if (entry->raised.exchange(true, std::memory_order_acq_rel)) return false;
  entry->next = top_.load(std::memory_order_relaxed);
  while (!top_.compare_exchange_weak(entry->next, entry, std::memory_order_seq_cst, std::memory_order_relaxed)) {
  }
  return true;
}

bool RaisedSignals::Run(absl::FunctionRef<void()> after_each) {
  bool any = false;
  for (Entry* next = TakeAll(); next != nullptr;) {
    Entry* entry = std::exchange(next, next->next);
    if (entry->dropped) {
      delete entry;
      continue;
    }
    any = true;
    // Later raises cause another run; earlier raisers' writes are visible to this one.
    entry->raised.exchange(false, std::memory_order_acq_rel);
    running_ = entry;
    entry->task();
    running_ = nullptr;
    after_each();
    if (entry->dropped && !entry->raised.load(std::memory_order_relaxed)) delete entry;
  }
  return any;
}

// Reverses the stack: the order raised.
RaisedSignals::Entry* RaisedSignals::TakeAll() {
  Entry* raised = nullptr;
  for (Entry* entry = top_.exchange(nullptr, std::memory_order_acquire); entry != nullptr;) {
    Entry* below = entry->next;
    entry->next = raised;
    raised = std::exchange(entry, below);
  }
  return raised;
}

}  // namespace tokamak::os
