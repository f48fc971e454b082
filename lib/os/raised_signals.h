// RaisedSignals holds the signals of one loop that were raised and have not run: a lock-free stack
// that any thread pushes to and the loop takes whole. The loop finds them in O(raised), however
// many signals there are.
//
// A signal is in the stack at most once, from a raise to the start of its run. The entry of one
// that was dropped meanwhile is freed when the loop comes to it.
#pragma once

#include <atomic>

#include "absl/functional/function_ref.h"
#include "lib/base/event_loop.h"

namespace tokamak::os {

class RaisedSignals final {
 public:
  class Entry;

  RaisedSignals() = default;
  RaisedSignals(const RaisedSignals&) = delete;
  RaisedSignals& operator=(const RaisedSignals&) = delete;
  // All signals must have been dropped.
  ~RaisedSignals();

  // Loop's thread. Drop gives the entry back.
  Entry* Make(base::Task task);
  void Drop(Entry* entry);

  // Any thread. Returns true if this raise pushed `entry`: then the loop may have to be woken.
  [[nodiscard]] bool Raise(Entry* entry);

  // Loop's thread. Sequentially consistent: a raise not seen here sees earlier writes of the loop's
  // thread.
  bool empty() const { return top_.load(std::memory_order_seq_cst) == nullptr; }

  // Loop's thread. Runs each signal raised by now once, in order, then `after_each`. Returns true
  // if any ran.
  bool Run(absl::FunctionRef<void()> after_each);

 private:
  Entry* TakeAll();

  std::atomic<Entry*> top_{nullptr};
  Entry* running_ = nullptr;
};

}  // namespace tokamak::os
