// Uncancelled is a part of a call in which pthread_cancel(3) can end the thread at Look alone,
// where no step is half done, and not in any system call.
//
// Thread rule: belongs to the thread that made it; several are dropped in reverse order.
#pragma once

#include <pthread.h>

#include <utility>

namespace tokamak::client {

class Uncancelled final {
 public:
  Uncancelled() : outer_(std::exchange(innermost_, this)) { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() {
    pthread_setcancelstate(before_, nullptr);
    innermost_ = outer_;
  }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

  static bool may_end() {
    const Uncancelled* outermost = innermost_;
    while (outermost != nullptr && outermost->outer_ != nullptr) outermost = outermost->outer_;
    return outermost != nullptr && outermost->before_ == PTHREAD_CANCEL_ENABLE;
  }

  // Ends the thread here if it was cancelled, which destroys what is on its stack.
  static void Look() {
    if (!may_end()) return;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    pthread_testcancel();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  }

 private:
  static inline thread_local const Uncancelled* innermost_ = nullptr;

  const Uncancelled* const outer_;
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace tokamak::client
