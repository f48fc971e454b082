// PullWaiter is one who waits for an object that is being pulled.
//
// Thread rule: the node's control loop.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "lib/base/handle.h"
#include "lib/node/pulls/get_latency.h"

namespace tokamak::node {

// ok: the object is sealed here. Otherwise why it can never come: too large for this store, say.
using PullCallback = std::function<void(const absl::Status&)>;

// Dropping it stops waiting; when the last one stops, the pull is cancelled.
class PullWaiter : public base::Handle {
 public:
  // The latest failure while the pull goes on trying; ok when there was none.
  virtual absl::Status trouble() const = 0;
  // Once ok was reported: what brought the object.
  virtual Via via() const = 0;
};

}  // namespace tokamak::node
