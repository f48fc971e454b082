// Handle is the right to an answer that comes later: the one contract of every call in the tree
// that does not answer at once.
//
// Law: the callback runs at most once, on the loop of the caller, never inside the call that took
// it.
// Law: dropping the handle cancels. The callback never runs after, and what waited for it is given
//      back, at another node as well. A handle may be dropped inside its own callback; after the
//      callback has run it does nothing.
// Law: a handle that outlives the object it was got from does nothing, and its callback does not
// run.
#pragma once

#include <memory>

namespace tokamak::base {

class Handle {
 public:
  virtual ~Handle() = default;
};

// What such a call returns. Null where there is nothing to wait for.
using Pending = std::unique_ptr<Handle>;

}  // namespace tokamak::base
