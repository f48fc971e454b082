#include "lib/verbs/soft/alarm.h"

#include <algorithm>
#include <utility>

namespace tokamak::verbs::soft {

void Alarm::Set(base::Duration delay) {
  set_ = true;
  if (clock_.in_turn_) {
    relative_ = false;
    deadline_ = clock_.now_ + delay;
    clock_.Enqueue(*this);
    return;
  }
  relative_ = true;
  delay_ = delay;
  if (!listed_) {
    listed_ = true;
    clock_.relative_.push_back(this);
  }
  clock_.wake_up_();
}

void Alarm::Forget() {
  set_ = false;
  if (queued_at_ != kNotQueued) clock_.Remove(queued_at_);
  if (listed_) {
    clock_.relative_.erase(std::find(clock_.relative_.begin(), clock_.relative_.end(), this));
  }
}

void AlarmClock::Begin() {
  in_turn_ = true;
  now_ = loop_.Now();
  for (Alarm* alarm : relative_) {
    alarm->listed_ = false;
    if (!alarm->set_ || !alarm->relative_) continue;
    alarm->relative_ = false;
    alarm->deadline_ = now_ + alarm->delay_;
    Enqueue(*alarm);
  }
  relative_.clear();
}

void AlarmClock::Fire() {
  while (!queue_.empty() && queue_.front().time <= now_) {
    Alarm& alarm = *queue_.front().alarm;
    Remove(0);
    if (!alarm.set_ || alarm.relative_) continue;
    if (alarm.deadline_ > now_) {
      Enqueue(alarm);
      continue;
    }
    alarm.set_ = false;
    const base::Task due = alarm.on_due_;  // it may drop the alarm
    due();
  }
}

void AlarmClock::End() {
  // Entries that no longer say when their alarm is due must not wake the NIC.
  while (!queue_.empty()) {
    Alarm& alarm = *queue_.front().alarm;
    if (alarm.set_ && !alarm.relative_ && alarm.deadline_ == queue_.front().time) break;
    Remove(0);
    if (alarm.set_ && !alarm.relative_) Enqueue(alarm);
  }
  in_turn_ = false;
  if (queue_.empty()) {
    timer_.Cancel();
  } else if (!timer_.armed() || queue_.front().time < timer_time_) {
    timer_time_ = queue_.front().time;
    timer_ = loop_.RunAt(timer_time_, on_timer_);
  }
}

void AlarmClock::Enqueue(Alarm& alarm) {
  const size_t at = alarm.queued_at_;
  if (at == Alarm::kNotQueued) {
    queue_.emplace_back();
    Place(queue_.size() - 1, Entry{alarm.deadline_, next_order_++, &alarm});
    MoveUp(queue_.size() - 1);
  } else if (alarm.deadline_ < queue_[at].time) {
    Place(at, Entry{alarm.deadline_, next_order_++, &alarm});
    MoveUp(at);
  }
}

void AlarmClock::Remove(size_t at) {
  queue_[at].alarm->queued_at_ = Alarm::kNotQueued;
  const Entry last = queue_.back();
  queue_.pop_back();
  if (at == queue_.size()) return;
  Place(at, last);
  MoveUp(at);
  MoveDown(last.alarm->queued_at_);
}

void AlarmClock::Place(size_t at, const Entry& entry) {
  queue_[at] = entry;
  entry.alarm->queued_at_ = at;
}

void AlarmClock::MoveUp(size_t at) {
  const Entry entry = queue_[at];
  while (at > 0 && entry.Before(queue_[(at - 1) / 2])) {
    Place(at, queue_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  Place(at, entry);
}

void AlarmClock::MoveDown(size_t at) {
  const Entry entry = queue_[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= queue_.size()) break;
    if (child + 1 < queue_.size() && queue_[child + 1].Before(queue_[child])) ++child;
    if (!queue_[child].Before(entry)) break;
    Place(at, queue_[child]);
    at = child;
  }
  Place(at, entry);
}

}  // namespace tokamak::verbs::soft
