#include "lib/cli/common/interruption.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::cli {

namespace {

constexpr std::chrono::seconds kOneRequest(1);

void TellOf(const os::FileDescriptor& event) {
  const uint64_t one = 1;
  PCHECK(write(event.get(), &one, sizeof one) == sizeof one);
}

// nullopt: `ended` is readable.
std::optional<signalfd_siginfo> NextSignal(const os::FileDescriptor& raised, const os::FileDescriptor& ended) {
  pollfd waits[2] = {{raised.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}};
  while (poll(waits, 2, -1) < 0) {
  }
  signalfd_siginfo info{};
  if (waits[0].revents == 0 || read(raised.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return info;
}

// True for a process's repeat; keys come from the terminal.
bool IsSaidAgain(const signalfd_siginfo& first, const signalfd_siginfo& further,
                 std::chrono::steady_clock::duration after) {
  return further.ssi_code == SI_USER && further.ssi_signo == first.ssi_signo && further.ssi_pid == first.ssi_pid &&
         after < kOneRequest;
}

}  // namespace

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
  TellOf(stopped_);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Interruption::Watch() {
  const std::optional<signalfd_siginfo> first = NextSignal(raised_, stopped_);
  if (!first.has_value()) return;
  const auto began = std::chrono::steady_clock::now();
  const os::FileDescriptor tidy(eventfd(0, EFD_CLOEXEC));
  PCHECK(tidy.valid());
  std::thread tidying([&] {
    tidy_up_();
    TellOf(tidy);
  });
  std::optional<signalfd_siginfo> further;
  do {
    further = NextSignal(raised_, tidy);
  } while (further.has_value() && IsSaidAgain(*first, *further, std::chrono::steady_clock::now() - began));
  EndBy(further.value_or(*first).ssi_signo);
  tidying.join();
}

void Interruption::EndBy(uint32_t signal) {
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  raise(static_cast<int>(signal));
}

}  // namespace tokamak::cli
