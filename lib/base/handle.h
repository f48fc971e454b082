// Handle is the right to a later answer: the one contract of every call that does not answer at
// once.
//
// Law: the callback runs at most once, on the caller's loop, never inside the call that took it.
// Law: dropping the handle, also inside its callback, cancels: the callback never runs after, and
// resources held for it are given back, at another node as well. After the callback it has no
// effect.
// Law: a handle that outlives its source is inert, and its callback does not run.
#pragma once

#include <memory>

namespace tokamak::base {

class Handle {
 public:
  virtual ~Handle() = default;
};

// Null: nothing to wait for.
using Pending = std::unique_ptr<Handle>;

}  // namespace tokamak::base
