#include "lib/os/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cerrno>
#include <utility>

#include "lib/base/log.h"

namespace tokamak::os {
namespace {

void Prepare(const ThreadOptions& options) {
  pthread_setname_np(pthread_self(), options.name.substr(0, 15).c_str());
  // Otherwise the kernel adds up to 50 us to each sleep, to save power.
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  if (options.processors.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : options.processors) {
    if (processor >= 0 && processor < CPU_SETSIZE) CPU_SET(static_cast<size_t>(processor), &set);
  }
  errno = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
  if (errno != 0) PLOG(WARNING) << "thread " << options.name << " is not bound to its processors";
}

}  // namespace

std::thread StartThread(ThreadOptions options, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, SIGPROF);                     // a profiler's samples
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread inherits its maker's mask
  std::thread thread([options = std::move(options), body = std::move(body)] {
    Prepare(options);
    body();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace tokamak::os
