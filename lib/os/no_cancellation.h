// NoCancellation: while there is one, its thread is not cancelled (pthread_cancel(3)), but at the
// next cancellation point after it. Nearly every system call is such a point, and a thread that
// ends in one would leave behind what it was in the middle of.
//
// Thread rule: of the thread that made it, and dropped in reverse order of making.
#pragma once

#include <pthread.h>

namespace tokamak::os {

class NoCancellation final {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace tokamak::os
