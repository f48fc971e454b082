// Checkpoints keep what a training loop has reached: Snapshots through the store, while the loop
// goes on, or BlockingCheckpoints to a disk, while it waits.
#pragma once

#include <cstdint>

#include "tokamak/span.h"
#include "tokamak/status.h"

namespace tokamak::example {

class Checkpoints {
 public:
  virtual ~Checkpoints() = default;

  // True if Take would begin at once. If not, the loop may skip this one.
  virtual bool ready() = 0;

  // Keeps `state`, which may change again when this returns. The last of a run is `final`: for that
  // one it is worth waiting.
  virtual Status Take(uint64_t step, Span<const uint8_t> state, bool final) = 0;

  // Waits until all that was taken is safe, and leaves nothing behind but that. An error: what is
  // the matter, and what to do.
  virtual Status Finish() = 0;

  // OK as long as what is taken can be kept.
  virtual Status status() = 0;
};

}  // namespace tokamak::example
