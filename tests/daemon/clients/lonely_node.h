// LonelyNode is a node without peers: a real store and directory on the loop that a test gives it,
// behind an engine that takes pulls and never ends them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/daemon/clients/session.h"
#include "lib/directory/local.h"
#include "lib/node/engines/threaded_engine.h"
#include "lib/node/node.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

class LonelyNode final {
 public:
  LonelyNode(base::EventLoop& loop, absl::Span<uint8_t> arena)
      : store_(arena, Cache(), loop, trace_),
        directory_(loop),
        engine_(loop),
        node_(loop, store_, directory_, {&engine_}, base::Random(1), trace_, Options()),
        context_{loop, node_, arena.size(), "no device", [this] { return Snapshot(); }} {
    node_.Start([](const absl::Status&) {});
  }

  store::Store& store() { return store_; }
  directory::LocalDirectory& directory() { return directory_; }
  const SessionContext& context() const { return context_; }

 private:
  // Something can be evicted.
  static store::Options Cache() {
    store::Options options;
    options.cache = true;
    return options;
  }
  static node::NodeOptions Options() {
    node::NodeOptions options;
    options.id = "lonely";
    options.incarnation = 42;
    options.device = "no device";
    return options;
  }

  NodeSnapshot Snapshot() const {
    NodeSnapshot snapshot = SnapshotOf(node_);
    snapshot.rails = {{{"a_number_of_the_device", 7}}};
    return snapshot;
  }

  base::NoTrace trace_;
  store::Store store_;
  directory::LocalDirectory directory_;
  node::ThreadedEngine engine_;
  node::Node node_;
  const SessionContext context_;
};

}  // namespace tokamak::daemon
