// PullWaiter waits for one object that is being pulled. Thread rule: the node's control loop.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "lib/base/handle.h"
#include "lib/node/pulls/get_latency.h"

namespace tokamak::node {

// ok: the object is sealed here. Otherwise the reason why it can never come, e.g. too large for
// this store.
using PullCallback = std::function<void(const absl::Status&)>;

// Dropping it stops waiting; dropping the last one cancels the pull.
class PullWaiter : public base::Handle {
 public:
  // The latest failure while the pull goes on trying; ok: none.
  virtual absl::Status trouble() const = 0;
  // The way the object came; only after ok was reported.
  virtual Via via() const = 0;
};

}  // namespace tokamak::node
