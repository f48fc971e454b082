#include "lib/verbs/kernel/event_takers.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "lib/os/no_cancellation.h"

namespace tokamak::verbs::kernel {
namespace {

pid_t ThisThread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

bool Lives(pid_t thread) { return syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH; }

}  // namespace

void EventTakers::Asks(int channel) {
  const base::MutexLock lock(mutex_);
  const auto told = told_.find(channel);
  if (told == told_.end() || told->second != ThisThread()) return;
  told_.erase(told);
  asked_.NotifyAll();
}

void EventTakers::IsTold(int channel) {
  const base::MutexLock lock(mutex_);
  told_[channel] = ThisThread();
}

void EventTakers::AwaitOthers(int channel) {
  const os::NoCancellation no_cancellation;
  const base::MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + longest_;
  while (Owes(channel)) {
    if (std::chrono::steady_clock::now() >= until) {
      told_.erase(channel);
      return;
    }
    asked_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kLook);
  }
}

bool EventTakers::Owes(int channel) const {
  const auto told = told_.find(channel);
  return told != told_.end() && told->second != ThisThread() && Lives(told->second);
}

void EventTakers::Forget(int channel) {
  const base::MutexLock lock(mutex_);
  told_.erase(channel);
  asked_.NotifyAll();
}

}  // namespace tokamak::verbs::kernel
