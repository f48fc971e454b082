#include "lib/verbs/kernel/cancellable_sleep.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

// With exceptions this frame would have something to clean up.
#ifdef __EXCEPTIONS
#error "to be compiled without -fexceptions"
#endif

void tokamak_sleep_in_steps(const struct tokamak_wait* wait) {
  struct tokamak_sleep sleep = {.count = 0};
  pthread_cleanup_push(wait->abandon, wait->self);
  while (wait->step(wait->self, &sleep)) {
    pthread_setcancelstate(wait->cancel_state, NULL);
    sleep.interrupted = ppoll(sleep.descriptors, sleep.count, &sleep.longest, sleep.blocked) < 0 && errno == EINTR;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  }
  pthread_cleanup_pop(0);
}
