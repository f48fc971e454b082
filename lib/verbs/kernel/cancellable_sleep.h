// A wait in which a program's thread may be cancelled (pthread_cancel(3)).
//
// Whoever is cancelled is unwound by the C library with the system's libgcc, which cannot run the
// destructors of a shared object that has its C++ runtime inside. So a thread sleeps here, in a
// function of C, and on the way to it there is no frame with anything to clean up. What the wait
// has to take back is taken back by `abandon`.
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

// One sleep: until one of the descriptors is ready, a signal comes that is not blocked, or it was
// long enough.
struct tokamak_sleep {
  struct pollfd descriptors[TOKAMAK_SLEEP_DESCRIPTORS];
  nfds_t count;
  struct timespec longest;
  const sigset_t* blocked;
  int interrupted;  // by a signal: told to the next `step`
};

struct tokamak_wait {
  void* self;
  // Does what is to be done between two sleeps. Nonzero: the next one is described. Runs with
  // cancellation disabled, and throws nothing.
  int (*step)(void* self, struct tokamak_sleep* sleep);
  // Instead of the next step: the thread is cancelled. Throws nothing.
  void (*abandon)(void* self);
  int cancel_state;  // of the program, in its sleeps
};

// Steps and sleeps until a step says that it is over.
void tokamak_sleep_in_steps(const struct tokamak_wait* wait);

#ifdef __cplusplus
}
#endif
