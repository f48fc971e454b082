// Uncancelled is a part of a call in which its thread is cancelled (pthread_cancel(3)) at Look
// alone, where nothing is half done: not in whatever system call it happens to make.
//
// Thread rule: of the thread that made it, and dropped in reverse order of making.
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

  // Whether the program may cancel this thread.
  static bool may_end() {
    const Uncancelled* outermost = innermost_;
    while (outermost != nullptr && outermost->outer_ != nullptr) outermost = outermost->outer_;
    return outermost != nullptr && outermost->before_ == PTHREAD_CANCEL_ENABLE;
  }

  // The thread ends here if it was cancelled: what it has on its stack is destroyed.
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
