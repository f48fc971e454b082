// A wait in which a program's thread may be cancelled (pthread_cancel(3)).
//
// The C library unwinds a cancelled thread with the system's libgcc, which cannot run destructors
// of a shared object that has a C++ runtime of its own. So a thread sleeps in a function of C, and
// no frame on the way to it has anything to clean up: `abandon` takes back what the wait has taken.
//
// Thread rule: any thread.
#pragma once

#include <poll.h>
#include <signal.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TOKAMAK_SLEEP_DESCRIPTORS = 3 };

// One sleep, until one of the descriptors is ready, an unblocked signal comes, or the time is over.
struct tokamak_sleep {
  struct pollfd descriptors[TOKAMAK_SLEEP_DESCRIPTORS];
  nfds_t count;
  struct timespec longest;
  const sigset_t* blocked;
  int interrupted;  // by a signal: for the next `step`
};

struct tokamak_wait {
  void* self;
  // Works between two sleeps. Returns nonzero to sleep as described. Runs with cancellation
  // disabled; must not throw.
  int (*step)(void* self, struct tokamak_sleep* sleep);
  // Runs instead of the next step when the thread is cancelled. Must not throw.
  void (*abandon)(void* self);
  int cancel_state;  // the program's, restored in sleeps
};

void tokamak_sleep_in_steps(const struct tokamak_wait* wait);

#ifdef __cplusplus
}
#endif
