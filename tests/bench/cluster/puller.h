// Puller brings an object of another rank into this rank's store: by the node's own protocols or
// over a socket. The driver knows no other difference between what it compares.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "lib/base/handle.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/node/node.h"

namespace tokamak::bench {

class Puller {
 public:
  using Callback = std::function<void(const absl::Status&)>;

  virtual ~Puller() = default;

  // After OK the object is in the store, sealed, and pinned once for `who`.
  [[nodiscard]] virtual base::Pending Pull(uint32_t from, const base::ObjectId& id, store::Owner who,
                                           base::Duration timeout, Callback done) = 0;
};

// A get of the node, by one protocol. The directory knows the holder of the object.
class NodePuller final : public Puller {
 public:
  // `node` must outlive it.
  NodePuller(node::Node& node, transport::Protocol protocol) : node_(node), protocol_(protocol) {}

  base::Pending Pull(uint32_t, const base::ObjectId& id, store::Owner who, base::Duration timeout,
                     Callback done) override {
    node::GetOptions options;
    options.timeout = timeout;
    options.protocol = protocol_;
    return node_.Get({&id, 1}, options, who, [done = std::move(done)](absl::Span<const node::GetResult> results) {
      done(results.front().status);
    });
  }

 private:
  node::Node& node_;
  const transport::Protocol protocol_;
};

}  // namespace tokamak::bench
