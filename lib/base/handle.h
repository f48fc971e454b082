// Handle is the right to a later answer: the one contract of every call that does not answer at
// once.
//
// Law: the callback runs at most once, on the caller's loop, never inside the call that took it.
// Law: dropping the handle, also inside its callback, cancels: the callback never runs after, and
// resources held for it are given back, at another node as well. Dropping it after the callback has
// run has no effect.
// Law: a handle that outlives its source is inert, and its callback does not run.
#pragma once

#include <memory>

namespace tokamak::base {

class Handle {
 public:
  virtual ~Handle() = default;
};

// The result of such a call. Null if there is nothing to wait for.
using Pending = std::unique_ptr<Handle>;

}  // namespace tokamak::base
