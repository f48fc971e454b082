#include "sim/time/sim_loop.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "sim/time/virtual_signal.h"

namespace tokamak::sim {

Scheduler::~Scheduler() { CHECK_EQ(loops_, size_t{0}) << "a SimLoop outlives its Scheduler"; }

bool Scheduler::Step() {
  CHECK(!in_task_) << "a task must not run the scheduler";
  if (heap_.empty()) return false;
  SimLoop& loop = *heap_.front();
  world_ = loop.start_;
  task_now_ = world_;
  loop.busy_until_ = world_;
  running_ = &loop;
  in_task_ = true;
  ++tasks_run_;
  loop.timers_.Take()();
  in_task_ = false;
  if (running_) Update(*std::exchange(running_, nullptr));
  return true;
}

void Scheduler::Run() {
  stopped_ = false;
  while (!stopped_ && Step()) {
  }
}

bool Scheduler::RunUntilIdle(uint64_t most) {
  for (uint64_t i = 0; i < most && Step(); ++i) {
  }
  return idle();
}

void Scheduler::RunUntil(base::Time time) {
  while (!heap_.empty() && heap_.front()->start_ <= time) Step();
  world_ = std::max(world_, time);
}

bool Scheduler::RunUntil(const std::function<bool()>& done, base::Time limit) {
  while (!done()) {
    if (heap_.empty() || heap_.front()->start_ > limit) {
      world_ = std::max(world_, limit);
      return false;
    }
    Step();
  }
  return true;
}

bool Scheduler::InOrder::Before(const SimLoop* a, const SimLoop* b) const {
  return a->start_ != b->start_ ? a->start_ < b->start_ : a->order_ < b->order_;
}

void Scheduler::InOrder::Place(SimLoop* loop, size_t position) const { loop->position_ = position; }

void Scheduler::Update(SimLoop& loop) {
  if (&loop == running_) return;  // Step does it after the task
  if (loop.timers_.empty()) {
    if (loop.position_ != Heap::kNowhere) heap_.Remove(loop.position_);
    return;
  }
  loop.start_ = std::max({loop.timers_.next_time(), loop.busy_until_, world_});
  loop.order_ = loop.timers_.next_order();
  if (loop.position_ == Heap::kNowhere) {
    heap_.Push(&loop);
  } else {
    heap_.Update(loop.position_, &loop);
  }
}

void Scheduler::Forget(SimLoop& loop) {
  if (&loop == running_) running_ = nullptr;
  if (loop.position_ != Heap::kNowhere) heap_.Remove(loop.position_);
}

SimLoop::SimLoop(Scheduler& scheduler)
    : scheduler_(scheduler), busy_until_(scheduler.Now()), setup_now_(scheduler.Now()) {
  ++scheduler_.loops_;
}

SimLoop::~SimLoop() {
  timers_.Clear();
  scheduler_.Forget(*this);
  --scheduler_.loops_;
}

base::Time SimLoop::Now() const {
  if (scheduler_.in_task_) return scheduler_.task_now_;
  return std::max(scheduler_.world_, setup_now_);
}

void SimLoop::Spend(base::Duration duration) {
  CHECK(duration >= base::Duration());
  CHECK(!scheduler_.in_task_ || scheduler_.running_ == this) << "time is spent on a loop that does not run";
  spent_ = spent_ + duration;
  const base::Time now = Now() + duration;
  if (scheduler_.in_task_) {
    scheduler_.task_now_ = now;
    busy_until_ = now;
  } else {
    setup_now_ = now;
    busy_until_ = std::max(busy_until_, now);
    scheduler_.Update(*this);
  }
}

std::unique_ptr<base::Signal> SimLoop::MakeSignal(base::Task task) {
  return std::make_unique<VirtualSignal>(*this, std::move(task));
}

uint64_t SimLoop::Schedule(base::Time time, base::Task&& task) {
  const uint64_t ticket = timers_.Add(std::max(time, Now()), scheduler_.next_order_++, std::move(task));
  scheduler_.Update(*this);
  return ticket;
}

void SimLoop::Unschedule(uint64_t ticket) {
  timers_.Remove(ticket);
  scheduler_.Update(*this);
}

}  // namespace tokamak::sim
