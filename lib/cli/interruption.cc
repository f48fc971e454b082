#include "lib/cli/interruption.h"

#include <glog/logging.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

namespace tokamak::cli {

Interruption::Interruption(std::function<void()> tidy_up) : tidy_up_(std::move(tidy_up)) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  raised_ = os::FileDescriptor(signalfd(-1, &signals_, SFD_CLOEXEC));
  stopped_ = os::FileDescriptor(eventfd(0, EFD_CLOEXEC));
  PCHECK(raised_.valid() && stopped_.valid());
  thread_ = std::thread([this] { Watch(); });
}

Interruption::~Interruption() {
  const uint64_t one = 1;
  PCHECK(write(stopped_.get(), &one, sizeof one) == sizeof one);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Interruption::Watch() {
  pollfd waits[2] = {{raised_.get(), POLLIN, 0}, {stopped_.get(), POLLIN, 0}};
  while (poll(waits, 2, -1) < 0) {
  }
  signalfd_siginfo info{};
  if (waits[0].revents == 0 || read(raised_.get(), &info, sizeof info) != sizeof info) return;
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  tidy_up_();
  raise(static_cast<int>(info.ssi_signo));
}

}  // namespace tokamak::cli
