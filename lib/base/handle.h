// Handle is the right to an answer that comes later: the one contract of every call in the tree
// that does not answer at once.
//
// Law: the callback runs at most once, on the caller's loop, never inside the call that took it.
// Law: dropping the handle cancels. The callback never runs after, and resources held for it are
// given back, at another node as well. A handle may be dropped inside its own callback; after the
// callback has run, dropping it has no effect.
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
