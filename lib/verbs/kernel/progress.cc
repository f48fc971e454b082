#include "lib/verbs/kernel/progress.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <type_traits>
#include <utility>

#include "lib/os/thread.h"
#include "lib/verbs/kernel/cancellable_sleep.h"

namespace tokamak::verbs::kernel {
namespace {

// Blocks signals, except those that a thread raises itself, until the sleep, which they end: so
// none is missed that comes before it.
void LetSignalsWait(sigset_t* before) {
  sigset_t most;
  sigfillset(&most);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&most, own);
  pthread_sigmask(SIG_BLOCK, &most, before);
}

timespec TimespecOf(base::Duration duration) {
  timespec time;
  time.tv_sec = static_cast<time_t>(duration.nanoseconds() / 1'000'000'000);
  time.tv_nsec = static_cast<long>(duration.nanoseconds() % 1'000'000'000);  // NOLINT(runtime/int): timespec's type
  return time;
}

template <size_t kCount>
void WaitFor(pollfd (&descriptors)[kCount], base::Duration most) {
  const timespec limit = TimespecOf(most);
  ppoll(descriptors, kCount, &limit, nullptr);
}

bool IsReadable(int descriptor) {
  pollfd one[] = {{descriptor, POLLIN, 0}};
  return poll(one, 1, 0) > 0;
}

constexpr base::Duration kLong = base::Seconds(3600);

}  // namespace

// One call of WaitReadable, in steps between which its thread sleeps. It must give back by itself
// what it takes, as no destructor may run: see cancellable_sleep.h.
class Progress::Wait final {
 public:
  Wait(Progress& progress, int descriptor) : progress_(progress), descriptor_(descriptor) {}

  int Run() {
    tokamak_wait wait{this, &Step, &Abandon, PTHREAD_CANCEL_ENABLE};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &wait.cancel_state);
    LetSignalsWait(&signals_);
    tokamak_sleep_in_steps(&wait);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
    pthread_setcancelstate(wait.cancel_state, nullptr);
    return error_;
  }

 private:
  enum class Slept : uint8_t {
    kNot,
    kAtLoop,  // serves the network
    kBeside,  // another thread does
  };

  static int Step(void* self, tokamak_sleep* sleep) { return static_cast<Wait*>(self)->TakeStep(sleep) ? 1 : 0; }
  static void Abandon(void* self) { static_cast<Wait*>(self)->BeCancelled(); }

  bool TakeStep(tokamak_sleep* sleep);
  bool End(int error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(progress_.mutex_);
  void BeCancelled();

  Progress& progress_;
  const int descriptor_;
  sigset_t signals_;  // blocked by the program
  base::Time began_;
  Slept slept_ = Slept::kNot;
  int error_ = 0;
};

Progress::Progress(os::EpollLoop& loop, std::function<void()> before_round)
    : loop_(loop),
      before_round_(std::move(before_round)),
      control_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      waiter_control_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = os::StartThread({"tokamak-nic"}, [this] { RunThread(); });
}

Progress::~Progress() { Stop(); }

void Progress::Stop() {
  const os::NoCancellation no_cancellation;
  stopping_.store(true);
  WakeThread();
  if (thread_.joinable()) thread_.join();
}

void Progress::RunRaised() {
  int round = 0;
  do {
    before_round_();
  } while (loop_.RunRaised() && ++round < kMostRounds);
  Announce(Waits::kNobody);
}

bool Progress::RunRounds(int most) {
  bool any = false;
  for (int round = 0; round < most; ++round) {
    before_round_();
    if (!loop_.RunDue()) return any;
    any = true;
  }
  return true;
}

// Does what is due, and announces that the caller is about to leave the loop.
base::Duration Progress::Settle(Waits waits) {
  RunRounds(kMostRounds);
  return Announce(waits);
}

// Returns how long there is nothing to do. Wakes a thread that sleeps for longer: a timer was set
// since. Peers need to wake us only if a thread waits, or will.
base::Duration Progress::Announce(Waits waits) {
  bool more = false;
  if (waits == Waits::kWill || mode_ == Mode::kWatching || waiter_) {
    for (int round = 0; (more = loop_.ArmPollers()) && round < kMostRounds; ++round) RunRounds(1);
  }
  const base::Duration prepared = loop_.PrepareToWait();
  const base::Duration wait = more ? base::Duration() : prepared;
  if (mode_ == Mode::kWatching && loop_.Now() + wait < watches_until_) {
    watches_until_ = base::Time();
    WakeThread();
  }
  if (waiter_ && loop_.Now() + wait < waits_until_) {
    waits_until_ = base::Time();
    Wake(waiter_control_);
  }
  return wait;
}

void Progress::Wake(const os::FileDescriptor& control) {
  const uint64_t one = 1;
  if (write(control.get(), &one, sizeof(one)) != sizeof(one)) return;  // it is woken already
}

void Progress::Poll() {
  const os::NoCancellation no_cancellation;
  polls_.fetch_add(1, std::memory_order_relaxed);
  if (empty_polls_.fetch_add(1, std::memory_order_relaxed) % kPollsPerYield == kPollsPerYield - 1) sched_yield();
  if (!mutex_.TryLock()) return;
  loop_.Attend();
  if (RunRounds(kMostRounds)) empty_polls_.store(0, std::memory_order_relaxed);
  Settle(Waits::kNobody);
  mutex_.Unlock();
}

void Progress::ExpectSleep() {
  const os::NoCancellation no_cancellation;
  const base::MutexLock lock(mutex_);
  polls_.store(0, std::memory_order_relaxed);
  polls_seen_ = 0;
  if (mode_ == Mode::kStandby && waits_ == waits_seen_) WakeThread();
}

int Progress::WaitReadable(int descriptor) {
  static_assert(std::is_trivially_destructible_v<Wait>);
  Wait wait(*this, descriptor);
  return wait.Run();
}

bool Progress::SpinUntilReadable(int descriptor) {
  ++waits_;
  if (mode_ == Mode::kWatching) WakeThread();
  const base::Time until = loop_.Now() + kSpin;
  while (!IsReadable(descriptor)) {
    if (loop_.Now() >= until) return false;
    mutex_.RunUnlocked([] { sched_yield(); });
    loop_.Attend();
    RunRounds(1);
  }
  Settle(Waits::kNobody);
  return true;
}

bool Progress::Wait::TakeStep(tokamak_sleep* sleep) {
  const base::MutexLock lock(progress_.mutex_);
  if (slept_ == Slept::kNot) {
    began_ = progress_.loop_.Now();
    const bool spins = !progress_.waiter_ && progress_.last_wait_ <= kShortWait;
    if (spins && progress_.SpinUntilReadable(descriptor_)) return End(0);
  }
  if (slept_ == Slept::kAtLoop) {
    progress_.LeaveLoop();
    if (sleep->interrupted != 0) {
      progress_.Settle(Waits::kNobody);
      return End(EINTR);
    }
  }
  if (slept_ == Slept::kBeside) return End(sleep->interrupted != 0 ? EINTR : 0);

  base::Duration longest = progress_.Settle(Waits::kWill);
  if (IsReadable(descriptor_)) return End(0);
  sleep->count = 0;
  sleep->descriptors[sleep->count++] = {descriptor_, POLLIN, 0};
  if (progress_.waiter_) {
    slept_ = Slept::kBeside;
    longest = kLong;
  } else {
    slept_ = Slept::kAtLoop;
    sleep->descriptors[sleep->count++] = {progress_.loop_.descriptor(), POLLIN, 0};
    sleep->descriptors[sleep->count++] = {progress_.waiter_control_.get(), POLLIN, 0};
    progress_.waiter_ = true;
    progress_.waits_until_ = progress_.loop_.Now() + longest;
    ++progress_.waits_;
    if (progress_.mode_ == Mode::kWatching) progress_.WakeThread();
  }
  sleep->longest = TimespecOf(longest);
  sleep->blocked = &signals_;
  return true;
}

bool Progress::Wait::End(int error) {
  progress_.last_wait_ = progress_.loop_.Now() - began_;
  error_ = error;
  return false;
}

void Progress::Wait::BeCancelled() {
  if (slept_ == Slept::kAtLoop) {
    const base::MutexLock lock(progress_.mutex_);
    progress_.LeaveLoop();
    progress_.Settle(Waits::kNobody);
  }
  pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
}

void Progress::LeaveLoop() {
  waiter_ = false;
  uint64_t woken = 0;
  if (read(waiter_control_.get(), &woken, sizeof(woken)) < 0) woken = 0;  // not woken
  ++waits_;
  if (mode_ == Mode::kResting) WakeThread();
}

// Decides what the thread does next, by what it has seen since it last asked.
Progress::Mode Progress::NextMode() {
  const uint64_t polls = polls_.load(std::memory_order_relaxed);
  const bool polled = polls - std::min(polls, polls_seen_) >= kBusyPolls;
  const bool waited = waits_ != waits_seen_;
  polls_seen_ = polls;
  waits_seen_ = waits_;
  if (waiter_ && !waited) return Mode::kResting;
  return polled || waited || waiter_ ? Mode::kStandby : Mode::kWatching;
}

// Looks a little longer at a network that was busy at the last look: it would wake a sleeper at
// once.
void Progress::SpinABit() {
  const uint64_t waits = waits_;
  const uint64_t polls = polls_.load(std::memory_order_relaxed);
  const auto others_work = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return waiter_ || waits_ != waits || polls_.load(std::memory_order_relaxed) - polls >= kBusyPolls;
  };
  const base::Time longest = loop_.Now() + kGrace;
  base::Time until = loop_.Now() + kThreadSpin;
  while (loop_.Now() < std::min(until, longest) && !others_work() && !stopping_.load()) {
    mutex_.RunUnlocked([] { sched_yield(); });
    loop_.Attend();
    if (RunRounds(1)) until = loop_.Now() + kThreadSpin;
  }
  Settle(Waits::kNobody);
}

void Progress::RunThread() {
  const base::MutexLock lock(mutex_);
  while (!stopping_.load()) {
    const Mode next = NextMode();
    if (next == Mode::kWatching && std::exchange(worked_, false)) {
      SpinABit();
      continue;
    }
    base::Duration wait = next == Mode::kStandby ? kGrace : kLong;
    if (next == Mode::kWatching) {
      wait = Settle(Waits::kWill);
      watches_until_ = loop_.Now() + wait;
    }
    mode_ = next;
    // Only a watching thread looks at the loop's descriptor.
    pollfd both[] = {{control_.get(), POLLIN, 0}, {next == Mode::kWatching ? loop_.descriptor() : -1, POLLIN, 0}};
    mutex_.RunUnlocked([&] {
      WaitFor(both, wait);
      uint64_t woken = 0;
      if ((both[0].revents & POLLIN) != 0 && read(control_.get(), &woken, sizeof(woken)) < 0) woken = 0;
    });
    mode_ = Mode::kAtWork;
    if (next == Mode::kWatching) {
      worked_ = (both[1].revents & POLLIN) != 0;
      Settle(Waits::kNobody);
    }
  }
}

}  // namespace tokamak::verbs::kernel
