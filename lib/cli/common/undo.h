// Undo reverses a command's steps when it fails or is interrupted, so that nothing stays half done.
//
// A step and its reversal are noted atomically. End with Complete or TakeBack. Thread rule: one
// thread does the steps; Interrupt is for another.
#pragma once

#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "lib/base/mutex.h"

namespace tokamak::cli {

class Undo final {
 public:
  using Step = absl::FunctionRef<absl::Status()>;
  using Reversal = std::function<absl::Status()>;

  Undo() = default;
  ~Undo();
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  // Runs `step`, and keeps `reversal` on success. kCancelled, without running it: interrupted.
  absl::Status Do(Step step, Reversal reversal);

  // Runs the last step: on success everything stays. kCancelled as for Do.
  absl::Status Complete(Step step);
  absl::Status Complete();

  // Reverses steps, last first. Returns the first failure; gives up once a daemon does not answer:
  // each would wait as long.
  absl::Status TakeBack();

  // TakeBack, for good.
  absl::Status Interrupt();

 private:
  absl::Status TakeBackLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  base::Mutex mutex_;  // held while a step runs
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Reversal> reversals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::cli
