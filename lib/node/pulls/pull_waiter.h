// PullWaiter waits for one object that is being pulled. Thread rule: the control loop.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "lib/base/handle.h"
#include "lib/node/pulls/get_latency.h"

namespace tokamak::node {

// ok: sealed here. Otherwise why it can never come, e.g. too large for this store.
using PullCallback = std::function<void(const absl::Status&)>;

// Dropping it stops waiting; dropping the last one cancels the pull.
class PullWaiter : public base::Handle {
 public:
  // The latest failure while the pull retries; ok: none.
  virtual absl::Status trouble() const = 0;
  // Requires that ok was reported.
  virtual Via via() const = 0;
};

}  // namespace tokamak::node
