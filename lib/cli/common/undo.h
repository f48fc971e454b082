// Undo reverses a command's steps when it fails or is interrupted, so that nothing stays half done.
//
// A step and the note of its reversal are atomic: a thread that takes everything back finds both or
// neither. End with Complete or TakeBack before dropping this. Thread rule: one thread does the
// steps; Interrupt is for another.
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

  // Runs `step`, and remembers `reversal` if it succeeds. kCancelled, without running it: Interrupt
  // was called.
  absl::Status Do(Step step, Reversal reversal);

  // Runs the step that completes the work: if it succeeds, everything stays. kCancelled as for Do.
  absl::Status Complete(Step step);
  absl::Status Complete();

  // Reverses every step, the last first. Returns the first failure; gives up once a daemon no
  // longer answers, as the others would wait just as long.
  absl::Status TakeBack();

  // TakeBack for good: no further step runs.
  absl::Status Interrupt();

 private:
  absl::Status TakeBackLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  base::Mutex mutex_;  // held while a step runs
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Reversal> reversals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::cli
