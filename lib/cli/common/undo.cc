#include "lib/cli/common/undo.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::cli {

namespace {

absl::Status Interrupted() { return absl::CancelledError("interrupted"); }

}  // namespace

Undo::~Undo() { CHECK(reversals_.empty()) << "neither completed nor taken back"; }

absl::Status Undo::Do(Step step, Reversal reversal) {
  const base::MutexLock lock(mutex_);
  if (interrupted_) return Interrupted();
  absl::Status status = step();
  if (status.ok()) reversals_.push_back(std::move(reversal));
  return status;
}

absl::Status Undo::Complete(Step step) {
  const base::MutexLock lock(mutex_);
  if (interrupted_) return Interrupted();
  absl::Status status = step();
  if (status.ok()) reversals_.clear();
  return status;
}

absl::Status Undo::Complete() {
  return Complete([] { return absl::OkStatus(); });
}

absl::Status Undo::TakeBack() {
  const base::MutexLock lock(mutex_);
  return TakeBackLocked();
}

absl::Status Undo::Interrupt() {
  const base::MutexLock lock(mutex_);
  interrupted_ = true;
  return TakeBackLocked();
}

absl::Status Undo::TakeBackLocked() {
  absl::Status first;
  while (!reversals_.empty()) {
    const Reversal reversal = std::move(reversals_.back());
    reversals_.pop_back();
    const absl::Status status = reversal();
    first.Update(status);
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) reversals_.clear();
  }
  return first;
}

}  // namespace tokamak::cli
