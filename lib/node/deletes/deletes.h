// Deletes runs the Deletes of this node's programs: some at once, the others in turn, by program.
//
// A program with thousands gets at most half of the places (base::FairTurns), so that another one's
// Delete begins at once. Each asks a few other nodes; their calls share Engine::programs().
// Bound: kMaxDeletes run. A Delete that has not begun after kTurnDeadline fails, having deleted
// nothing (kUnavailable). Thread rule: the node's control loop.
#pragma once

#include <cstddef>
#include <functional>

#include "lib/base/event_loop.h"
#include "lib/base/fair_turns.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/base/object_id.h"
#include "lib/node/deletes/object_delete.h"
#include "lib/store/store.h"

namespace tokamak::node {

class Deletes final {
 public:
  static constexpr size_t kMaxDeletes = 256;
  static constexpr base::Duration kTurnDeadline = base::Seconds(30);

  using Begin = std::function<base::Pending(const base::ObjectId& id, ObjectDelete::Callback done)>;

  // `loop` must outlive it.
  Deletes(base::EventLoop& loop, Begin begin)
      : loop_(loop), begin_(std::move(begin)), turns_(kMaxDeletes, kMaxDeletes) {}
  Deletes(const Deletes&) = delete;
  Deletes& operator=(const Deletes&) = delete;

  // `done` runs once, later.
  [[nodiscard]] base::Pending Add(const base::ObjectId& id, store::Owner who, ObjectDelete::Callback done);

  size_t running() const { return turns_.running(); }
  size_t waiting() const { return turns_.waiting(); }

 private:
  using Turns = base::FairTurns<store::Owner>;
  class One;

  void End(One& one);
  void RunNextSoon();

  base::EventLoop& loop_;
  const Begin begin_;
  Turns turns_;
  base::Timer next_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::node
