#include "lib/verbs/soft/state/alarm.h"

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
  if (queued_at_ != AlarmClock::Queue::kNowhere) clock_.queue_.Remove(queued_at_);
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
    queue_.Remove(0);
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
  // An entry earlier than its alarm's deadline must not wake the NIC.
  while (!queue_.empty()) {
    Alarm& alarm = *queue_.front().alarm;
    if (alarm.set_ && !alarm.relative_ && alarm.deadline_ == queue_.front().time) break;
    queue_.Remove(0);
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
  if (at == Queue::kNowhere) {
    queue_.Push({alarm.deadline_, next_order_++, &alarm});
  } else if (alarm.deadline_ < queue_[at].time) {
    queue_.Update(at, {alarm.deadline_, next_order_++, &alarm});
  }
}

}  // namespace tokamak::verbs::soft
