#include "lib/os/epoll_loop.h"

#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "lib/base/check.h"

namespace tokamak::os {
namespace {

constexpr uint64_t kWakeTicket = UINT64_MAX;

// Rounds up: a loop that wakes early would find no due task, and spin.
timespec RoundUpToNanoseconds(base::Duration wait) {
  const int64_t nanoseconds = (wait + base::Duration::Picoseconds(999)).nanoseconds();
  return {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
}

int RoundUpToMilliseconds(base::Duration wait) {
  return static_cast<int>((wait + base::Milliseconds(1) - base::Duration::Picoseconds(1)).milliseconds());
}

}  // namespace

class EpollLoop::LoopSignal final : public base::Signal {
 public:
  LoopSignal(EpollLoop& loop, base::Task task) : loop_(loop), entry_(loop.signals_.Make(std::move(task))) {}
  ~LoopSignal() override { loop_.signals_.Drop(entry_); }

  void Raise() override {
    if (loop_.signals_.Raise(entry_)) loop_.Wake();
  }

 private:
  EpollLoop& loop_;
  RaisedSignals::Entry* const entry_;
};

FdWatch& FdWatch::operator=(FdWatch&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  loop_ = std::exchange(other.loop_, nullptr);
  ticket_ = other.ticket_;
  return *this;
}

void FdWatch::SetEvents(uint32_t events) {
  CHECK(loop_ != nullptr) << "nothing is watched";
  loop_->SetEvents(ticket_, events);
}

void FdWatch::Reset() {
  if (EpollLoop* loop = std::exchange(loop_, nullptr)) loop->Unwatch(ticket_);
}

PollerHandle& PollerHandle::operator=(PollerHandle&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  loop_ = std::exchange(other.loop_, nullptr);
  poller_ = other.poller_;
  return *this;
}

void PollerHandle::Reset() {
  if (EpollLoop* loop = std::exchange(loop_, nullptr)) loop->RemovePoller(poller_);
}

uint64_t EpollLoop::MonotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

EpollLoop::EpollLoop(Detection detection, Clock clock)
    : clock_(clock),
      began_(clock()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      detection_(detection) {
  PCHECK(epoll_.valid()) << "epoll_create1";
  PCHECK(wake_.valid()) << "eventfd";
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;  // edges: it is never read
  event.data.u64 = kWakeTicket;
  PCHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0);
}

EpollLoop::~EpollLoop() {
  CHECK(!in_round_) << "a task must not drop its loop";
  timers_.Clear();
  for (const Polled& polled : pollers_) CHECK(polled.poller == nullptr) << "a poller's handle outlives its loop";
  CHECK_EQ(watched_free_.size(), watched_.size()) << "a watch outlives its loop";
}

void EpollLoop::Run() {
  while (!stopped_.load(std::memory_order_seq_cst)) Turn(nullptr);
  stopped_.store(false, std::memory_order_seq_cst);
}

void EpollLoop::Stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  Wake();
}

bool EpollLoop::RunUntil(const std::function<bool()>& done, base::Time limit) {
  LookAtClock();
  for (;;) {
    if (done()) return true;
    if (stopped_.load(std::memory_order_relaxed) || now_ >= limit) return false;
    Turn(&limit);
  }
}

bool EpollLoop::RunDue() {
  CHECK(!in_round_) << "a task must not run its loop";
  in_round_ = true;
  LookAtClock();
  bool any = RunTimers();
  any |= RunSignals();
  any |= RunPollers();
  // Descriptors cost a system call: they are looked at without other work, or after a while.
  if (!any || ++rounds_since_ >= kBusyRounds) any |= RunDescriptors(base::Duration());
  in_round_ = false;
  return any;
}

bool EpollLoop::RunRaised() {
  CHECK(!in_round_) << "a task must not run its loop";
  in_round_ = true;
  fresh_ = false;
  const bool any = RunSignals();
  in_round_ = false;
  return any;
}

bool EpollLoop::ArmPollers() {
  CHECK(!in_round_) << "a task must not wait for its loop";
  for (size_t i = 0; i < pollers_.size(); ++i) {
    if (pollers_[i].poller != nullptr) pollers_[i].poller->Arm();
  }
  in_round_ = true;
  const bool any = RunPollers();
  in_round_ = false;
  return any;
}

base::Duration EpollLoop::PrepareToWait() {
  CHECK(!in_round_) << "a task must not wait for its loop";
  LookAtClock();
  return AnnounceSleep(nullptr);
}

FdWatch EpollLoop::Watch(int fd, uint32_t events, FdCallback callback) {
  if (watched_free_.empty()) {
    watched_free_.push_back(static_cast<uint32_t>(watched_.size()));
    watched_.emplace_back();
  }
  const uint32_t index = watched_free_.back();
  watched_free_.pop_back();
  Watched& watched = watched_[index];
  watched.fd = fd;
  watched.events = events;
  watched.callback = std::move(callback);

  const uint64_t ticket = uint64_t{watched.generation} << 32 | index;
  epoll_event event{};
  event.events = events;
  event.data.u64 = ticket;
  PCHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) << "watch descriptor " << fd;
  return FdWatch(*this, ticket);
}

PollerHandle EpollLoop::AddPoller(Poller& poller) {
  Polled polled;
  polled.poller = &poller;
  // This only ends the sleep; RunPollers does the work.
  if (poller.descriptor() >= 0) polled.watch = Watch(poller.descriptor(), EPOLLIN, [](uint32_t) {});
  pollers_.push_back(std::move(polled));
  return PollerHandle(*this, poller);
}

void EpollLoop::SetDetection(Detection detection) {
  detection_ = detection;
  spinning_ = false;
}

std::unique_ptr<base::Signal> EpollLoop::MakeSignal(base::Task task) {
  return std::make_unique<LoopSignal>(*this, std::move(task));
}

uint64_t EpollLoop::Schedule(base::Time time, base::Task&& task) {
  return timers_.Add(std::max(time, Now()), next_order_++, std::move(task));
}

base::Time EpollLoop::ReadClock() const { return base::Time::FromPicoseconds((clock_() - began_) * 1000); }

void EpollLoop::LookAtClock() const {
  now_ = ReadClock();
  fresh_ = true;
}

void EpollLoop::Turn(const base::Time* limit) {
  CHECK(!in_round_) << "a task must not run its loop";
  in_round_ = true;
  fresh_ = false;
  if (rounds_to_clock_ == 0) {
    LookAtClock();
    rounds_to_clock_ = kIdleRoundsPerClock;
  }
  if (worked_) {
    spinning_ = detection_.mode == Detection::Mode::kAdaptive;
    spin_until_ = now_ + detection_.spin;
  }
  worked_ = RunRound();
  const bool spins = !worked_ && Spinning();
  if (!worked_) worked_ = spins ? Look() : Sleep(limit);
  rounds_to_clock_ = spins && !worked_ ? rounds_to_clock_ - 1 : 0;
  in_round_ = false;
}

// Leaves the descriptors to Look or Sleep if it finds no work.
bool EpollLoop::RunRound() {
  bool any = RunTimers();
  any |= RunSignals();
  any |= RunPollers();
  if (any && ++rounds_since_ >= kBusyRounds && now_ - descriptors_seen_ >= kDescriptorInterval) {
    RunDescriptors(base::Duration());
  }
  return any;
}

bool EpollLoop::RunTimers() {
  int count = 0;
  while (count < kTimersPerRound && !timers_.empty() && timers_.next_time() <= now_) {
    timers_.Take()();
    ++count;
    fresh_ = false;
  }
  return count > 0;
}

bool EpollLoop::RunSignals() {
  if (signals_.empty()) return false;
  return signals_.Run([this] { fresh_ = false; });
}

bool EpollLoop::RunPollers() {
  bool any = false;
  for (size_t i = 0; i < pollers_.size(); ++i) {  // Poll may add more
    if (pollers_[i].poller == nullptr) continue;
    if (!pollers_[i].poller->Poll()) continue;
    any = true;
    fresh_ = false;
  }
  if (std::exchange(pollers_removed_, false)) {
    const auto removed = [](const Polled& polled) { return polled.poller == nullptr; };
    pollers_.erase(std::remove_if(pollers_.begin(), pollers_.end(), removed), pollers_.end());
  }
  return any;
}

bool EpollLoop::RunDescriptors(base::Duration wait) {
  int count = -1;
  waits_.store(waits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (precise_wait_) {
    const timespec timeout = RoundUpToNanoseconds(wait);
    count = epoll_pwait2(epoll_.get(), events_.data(), kEventsPerRound, &timeout, nullptr);
    if (count < 0 && errno == ENOSYS) precise_wait_ = false;
  }
  if (!precise_wait_) count = epoll_wait(epoll_.get(), events_.data(), kEventsPerRound, RoundUpToMilliseconds(wait));
  PCHECK(count >= 0 || errno == EINTR) << "epoll_wait";
  asleep_.store(false, std::memory_order_relaxed);
  fresh_ = false;
  if (wait > base::Duration()) LookAtClock();
  descriptors_seen_ = now_;
  rounds_since_ = 0;
  for (int i = 0; i < count; ++i)
    RunCallback(events_[static_cast<size_t>(i)].data.u64, events_[static_cast<size_t>(i)].events);
  return count > 0;
}

bool EpollLoop::Spinning() {
  if (detection_.mode == Detection::Mode::kBusy) return true;
  spinning_ = spinning_ && now_ < spin_until_;
  return spinning_;
}

bool EpollLoop::Look() {
  return now_ - descriptors_seen_ >= kIdleDescriptorInterval && RunDescriptors(base::Duration());
}

// Sleeps until an event, a due timer or `limit`. Returns true if anything ran.
bool EpollLoop::Sleep(const base::Time* limit) {
  for (size_t i = 0; i < pollers_.size(); ++i) {
    if (pollers_[i].poller != nullptr) pollers_[i].poller->Arm();
  }
  if (RunPollers()) return true;
  return RunDescriptors(AnnounceSleep(limit));
}

// Either a raise, or Stop, sees that we sleep and wakes us, or we see it here. Returns how long to
// sleep.
base::Duration EpollLoop::AnnounceSleep(const base::Time* limit) {
  asleep_.store(true, std::memory_order_seq_cst);
  if (!signals_.empty() || stopped_.load(std::memory_order_seq_cst)) return base::Duration();
  base::Duration wait = kLongestSleep;
  if (limit != nullptr) wait = std::min(wait, *limit - now_);
  if (!timers_.empty()) wait = std::min(wait, timers_.next_time() - now_);
  return std::max(wait, base::Duration());
}

void EpollLoop::Wake() {
  if (!asleep_.load(std::memory_order_seq_cst)) return;
  if (!asleep_.exchange(false, std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  PCHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one) || errno == EAGAIN) << "wake the loop";
}

EpollLoop::Watched* EpollLoop::FindWatched(uint64_t ticket) {
  const auto index = static_cast<uint32_t>(ticket);
  if (index >= watched_.size()) return nullptr;
  Watched& watched = watched_[index];
  return watched.fd >= 0 && watched.generation == ticket >> 32 ? &watched : nullptr;
}

void EpollLoop::SetEvents(uint64_t ticket, uint32_t events) {
  Watched* watched = FindWatched(ticket);
  CHECK(watched != nullptr);
  if (watched->events == events) return;
  watched->events = events;
  epoll_event event{};
  event.events = events;
  event.data.u64 = ticket;
  PCHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, watched->fd, &event) == 0) << "watch descriptor " << watched->fd;
}

void EpollLoop::Unwatch(uint64_t ticket) {
  Watched* watched = FindWatched(ticket);
  CHECK(watched != nullptr);
  PCHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched->fd, nullptr) == 0)
      << "descriptor " << watched->fd << " was closed while it was watched";
  watched->fd = -1;
  ++watched->generation;
  watched_free_.push_back(static_cast<uint32_t>(ticket));
  const FdCallback dropped = std::exchange(watched->callback, nullptr);
}

void EpollLoop::RunCallback(uint64_t ticket, uint32_t events) {
  if (ticket == kWakeTicket) return;
  Watched* watched = FindWatched(ticket);
  if (watched == nullptr) return;  // dropped by a callback of the same batch
  const uint32_t asked_for = events & (watched->events | EPOLLERR | EPOLLHUP);
  if (asked_for == 0) return;
  // Held here while it runs: it may drop its own watch, or add others and so move `watched`.
  FdCallback callback = std::move(watched->callback);
  callback(asked_for);
  fresh_ = false;
  watched = FindWatched(ticket);
  if (watched != nullptr) watched->callback = std::move(callback);
}

void EpollLoop::RemovePoller(Poller* poller) {
  const auto it = std::find_if(pollers_.begin(), pollers_.end(), [=](const Polled& p) { return p.poller == poller; });
  CHECK(it != pollers_.end());
  if (in_round_) {  // perhaps inside its Poll: RunPollers erases it
    it->poller = nullptr;
    it->watch.Reset();
    pollers_removed_ = true;
  } else {
    pollers_.erase(it);
  }
}

}  // namespace tokamak::os
