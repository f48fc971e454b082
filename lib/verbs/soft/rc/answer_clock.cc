#include "lib/verbs/soft/rc/answer_clock.h"

#include <optional>
#include <utility>

#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kMostOverdue = 16;  // in a row; the agreed time is shorter long before

}  // namespace

AnswerClock::AnswerClock(AlarmClock& alarms, Congestion& congestion, base::Duration pause, base::Task on_timeout,
                         base::Task on_overdue)
    : alarms_(alarms),
      congestion_(congestion),
      pause_(pause),
      timeout_(alarms, std::move(on_timeout)),
      overdue_(alarms, std::move(on_overdue)) {}

void AnswerClock::Start() {
  overdue_in_a_row_ = 0;
  measuring_ = false;
}

void AnswerClock::Run(base::Duration agreed) {
  if (!timeout_.set()) timeout_.Set(AckTimeout(AckTimeoutCode(agreed)));
  SetOverdue(agreed);
}

void AnswerClock::RunAgain(base::Duration agreed) {
  timeout_.Set(AckTimeout(AckTimeoutCode(agreed)));
  SetOverdue(agreed);
}

void AnswerClock::Stop() {
  timeout_.Cancel();
  overdue_.Cancel();
}

void AnswerClock::SetOverdue(base::Duration agreed) {
  overdue_.Cancel();
  excused_ = false;
  const std::optional<base::Duration> overdue = congestion_.Overdue();
  if (!overdue.has_value() || overdue_in_a_row_ >= kMostOverdue) return;
  const base::Duration delay = *overdue * (int64_t{1} << overdue_in_a_row_);
  if (delay >= agreed) return;
  overdue_.Set(delay);
  overdue_at_ = alarms_.now() + delay;
}

void AnswerClock::OnAcknowledged(uint64_t unacked) {
  if (!measuring_ || unacked <= measured_) return;
  measuring_ = false;
  overdue_in_a_row_ = 0;
  congestion_.OnRoundTrip(alarms_.now() - sent_at_);
}

bool AnswerClock::CountOverdue() {
  if (!excused_ && alarms_.now() - overdue_at_ > pause_) {
    excused_ = true;
    overdue_.Set(pause_);
    return false;
  }
  ++overdue_in_a_row_;
  return true;
}

}  // namespace tokamak::verbs::soft
