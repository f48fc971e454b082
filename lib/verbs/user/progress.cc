#include "lib/verbs/user/progress.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/os/thread.h"

namespace tokamak::verbs::user {
namespace {

// While there is one, signals wait: for WaitFor, which they end, so that none is missed that comes
// before it. Those that a thread brings on itself do not wait.
class SignalsWait final {
 public:
  SignalsWait() {
    sigset_t most;
    sigfillset(&most);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&most, own);
    pthread_sigmask(SIG_BLOCK, &most, &before_);
  }
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

  const sigset_t* before() const { return &before_; }

 private:
  sigset_t before_;
};

// Waits for one of the descriptors, or for `most`. False: a signal came that is not in `blocked`,
// where given.
template <size_t kCount>
bool WaitFor(pollfd (&descriptors)[kCount], base::Duration most, const sigset_t* blocked = nullptr) {
  timespec limit;
  limit.tv_sec = static_cast<time_t>(most.nanoseconds() / 1'000'000'000);
  limit.tv_nsec = static_cast<long>(most.nanoseconds() % 1'000'000'000);  // NOLINT(runtime/int): timespec's type
  return ppoll(descriptors, kCount, &limit, blocked) >= 0 || errno != EINTR;
}

bool IsReadable(int descriptor) {
  pollfd one[] = {{descriptor, POLLIN, 0}};
  return poll(one, 1, 0) > 0;
}

constexpr base::Duration kLong = base::Seconds(3600);

}  // namespace

Progress::Progress(os::EpollLoop& loop, std::function<void()> before_round)
    : loop_(loop),
      before_round_(std::move(before_round)),
      control_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      waiter_control_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = os::StartThread({"tokamak-nic"}, [this] { RunThread(); });
}

Progress::~Progress() { Stop(); }

void Progress::Stop() {
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

// Returns how long there is nothing to do unless something comes. Who sleeps for longer than that
// is woken: a timer was set since. Only where somebody waits, or will, peers are to wake us.
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
  polls_.fetch_add(1, std::memory_order_relaxed);
  if (empty_polls_.fetch_add(1, std::memory_order_relaxed) % kPollsPerYield == kPollsPerYield - 1) sched_yield();
  if (!mutex_.try_lock()) return;
  loop_.Attend();
  if (RunRounds(kMostRounds)) empty_polls_.store(0, std::memory_order_relaxed);
  Settle(Waits::kNobody);
  mutex_.unlock();
}

void Progress::ExpectSleep() {
  const std::lock_guard<std::mutex> lock(mutex_);
  polls_.store(0, std::memory_order_relaxed);
  polls_seen_ = 0;
  if (mode_ == Mode::kStandby && waits_ == waits_seen_) WakeThread();
}

int Progress::WaitReadable(int descriptor) {
  const SignalsWait signals;
  std::unique_lock<std::mutex> lock(mutex_);
  const base::Time began = loop_.Now();
  const bool spins = !waiter_ && last_wait_ <= kShortWait;
  const int error =
      spins && SpinUntilReadable(descriptor, lock) ? 0 : SleepUntilReadable(descriptor, signals.before(), lock);
  last_wait_ = loop_.Now() - began;
  return error;
}

bool Progress::SpinUntilReadable(int descriptor, std::unique_lock<std::mutex>& lock) {
  ++waits_;
  if (mode_ == Mode::kWatching) WakeThread();
  const base::Time until = loop_.Now() + kSpin;
  while (!IsReadable(descriptor)) {
    if (loop_.Now() >= until) return false;
    lock.unlock();
    sched_yield();
    lock.lock();
    loop_.Attend();
    RunRounds(1);
  }
  Settle(Waits::kNobody);
  return true;
}

int Progress::SleepUntilReadable(int descriptor, const sigset_t* blocked, std::unique_lock<std::mutex>& lock) {
  for (;;) {
    const base::Duration wait = Settle(Waits::kWill);
    if (IsReadable(descriptor)) return 0;
    if (waiter_) {
      lock.unlock();
      pollfd one[] = {{descriptor, POLLIN, 0}};
      const bool waited = WaitFor(one, kLong, blocked);
      lock.lock();
      return waited ? 0 : EINTR;
    }
    waiter_ = true;
    waits_until_ = loop_.Now() + wait;
    ++waits_;
    if (mode_ == Mode::kWatching) WakeThread();
    lock.unlock();
    pollfd all[] = {{descriptor, POLLIN, 0}, {loop_.descriptor(), POLLIN, 0}, {waiter_control_.get(), POLLIN, 0}};
    const bool waited = WaitFor(all, wait, blocked);
    lock.lock();
    waiter_ = false;
    uint64_t woken = 0;
    if (read(waiter_control_.get(), &woken, sizeof(woken)) < 0) woken = 0;  // nobody did
    ++waits_;
    if (mode_ == Mode::kResting) WakeThread();
    if (!waited) {
      Settle(Waits::kNobody);
      return EINTR;
    }
  }
}

// What the thread is to do after what it has seen since it last asked.
Progress::Mode Progress::NextMode() {
  const uint64_t polls = polls_.load(std::memory_order_relaxed);
  const bool polled = polls - std::min(polls, polls_seen_) >= kBusyPolls;
  const bool waited = waits_ != waits_seen_;
  polls_seen_ = polls;
  waits_seen_ = waits_;
  if (waiter_ && !waited) return Mode::kResting;
  return polled || waited || waiter_ ? Mode::kStandby : Mode::kWatching;
}

// Looks a little longer at a network that was busy when the thread last looked, in place of going
// to sleep and being woken at once.
void Progress::SpinABit(std::unique_lock<std::mutex>& lock) {
  const uint64_t waits = waits_;
  const uint64_t polls = polls_.load(std::memory_order_relaxed);
  const auto others_work = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return waiter_ || waits_ != waits || polls_.load(std::memory_order_relaxed) - polls >= kBusyPolls;
  };
  const base::Time longest = loop_.Now() + kGrace;
  base::Time until = loop_.Now() + kThreadSpin;
  while (loop_.Now() < std::min(until, longest) && !others_work() && !stopping_.load()) {
    lock.unlock();
    sched_yield();
    lock.lock();
    loop_.Attend();
    if (RunRounds(1)) until = loop_.Now() + kThreadSpin;
  }
  Settle(Waits::kNobody);
}

void Progress::RunThread() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_.load()) {
    const Mode next = NextMode();
    if (next == Mode::kWatching && std::exchange(worked_, false)) {
      SpinABit(lock);
      continue;
    }
    base::Duration wait = next == Mode::kStandby ? kGrace : kLong;
    if (next == Mode::kWatching) {
      wait = Settle(Waits::kWill);
      watches_until_ = loop_.Now() + wait;
    }
    mode_ = next;
    lock.unlock();
    // Only who watches looks at the loop's descriptor.
    pollfd both[] = {{control_.get(), POLLIN, 0}, {next == Mode::kWatching ? loop_.descriptor() : -1, POLLIN, 0}};
    WaitFor(both, wait);
    uint64_t woken = 0;
    if ((both[0].revents & POLLIN) != 0 && read(control_.get(), &woken, sizeof(woken)) < 0) woken = 0;
    lock.lock();
    mode_ = Mode::kAtWork;
    if (next == Mode::kWatching) {
      worked_ = (both[1].revents & POLLIN) != 0;
      Settle(Waits::kNobody);
    }
  }
}

}  // namespace tokamak::verbs::user
