// Collective keeps the ranks of a run in step: each gives a few bytes and hears what all gave.
//
// Under MPI the ranks are processes (mpi_collective.h); in a test they are objects in virtual time.
// Measurements do not run through it: it only says when all are ready, and gathers their results.
//
// Law: every rank makes the same calls in the same order. One is under way at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"

namespace tokamak::bench {

class Collective {
 public:
  // `all`: the contributions of all ranks, one after another in their order; valid during the call.
  using GatherCallback = std::function<void(absl::Span<const uint8_t> all)>;

  virtual ~Collective() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;

  // Answers when every rank has called it. `mine` is copied, and as long on every rank. Dropping
  // the handle means that the run has failed: the collective is good for nothing after.
  [[nodiscard]] virtual base::Pending Gather(absl::Span<const uint8_t> mine, GatherCallback done) = 0;

  // The same without bytes, for ranks that come at nearly the same time: they leave together, as
  // far as the implementation can make them.
  [[nodiscard]] virtual base::Pending Barrier(base::Task done) = 0;
};

}  // namespace tokamak::bench
