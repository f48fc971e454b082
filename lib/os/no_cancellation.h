// NoCancellation delays the cancellation of its thread (pthread_cancel(3)) until the next
// cancellation point after its end. Nearly every system call is one, and a thread that ended there
// would leave its work half done.
//
// Thread rule: belongs to the thread that made it; dropped in reverse order of making.
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
