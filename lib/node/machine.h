// Machine is one whole node (store, engines, directory and node), assembled alike for all worlds,
// on given loops.
//
//   arena -> Store      rails (devices) -> engines -> directory -> Node
//
// The first engine shares the control loop (LocalEngine), so that a small object takes the short
// way: its get runs to completion on one thread. The other engines are for bulk, each on a loop of
// its own (ThreadedEngine, EngineHost).
//
// Dropped in reverse order. Thread rule: the control loop's thread; only set-up and tear-down cross
// to the engines'.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/directory/directory.h"
#include "lib/node/engines/engine.h"
#include "lib/node/engines/engine_host.h"
#include "lib/node/engines/local_engine.h"
#include "lib/node/engines/threaded_engine.h"
#include "lib/node/node.h"
#include "lib/store/store.h"
#include "lib/transport/endpoint.h"
#include "lib/transport/memory/rail.h"

namespace tokamak::node {

class EngineLoop {
 public:
  virtual ~EngineLoop() = default;

  virtual base::EventLoop& loop() = 0;

  // Runs `call` on the loop and waits for its end.
  virtual void CallOn(absl::FunctionRef<void()> call) = 0;

  virtual void Stop() = 0;
};

// A node's directory, and its service for other nodes, if any.
class DirectoryHost {
 public:
  virtual ~DirectoryHost() = default;
  virtual directory::Directory& directory() = 0;

  // Registers the directory's service with `node`, if served here.
  virtual void Serve(Node& node) = 0;
};

// All that it refers to must outlive the machine, unless a member says otherwise.
struct MachineParts {
  base::EventLoop& control;
  std::vector<std::unique_ptr<EngineLoop>> bulk;  // none: the first engine moves all
  absl::Span<uint8_t> arena;                      // 64-byte aligned, known to all rails
  absl::Span<const transport::Rail> rails;        // of the first engine; used during Assemble only
  absl::Span<const transport::Rail> bulk_rails;   // of the others; may be the same
  // Opens the directory, given the first engine and a stream of random numbers of this life.
  std::function<absl::StatusOr<std::unique_ptr<DirectoryHost>>(Engine&, base::Random)> directory;
  base::Trace& trace;
};

struct MachineOptions {
  NodeOptions node;
  store::Options store;
  verbs::Address listen;  // engine i listens on port + i; port 0: any
  transport::EndpointOptions endpoint;
  size_t max_engine_calls = kMaxEngineCalls;  // of each engine; fewer in tests
  uint64_t seed = 1;                          // differs for each life of each node
};

class Machine final {
 public:
  // Leaves nothing behind on error, which says in one line what to do. Only Start joins the
  // directory.
  static absl::StatusOr<std::unique_ptr<Machine>> Assemble(MachineParts parts, const MachineOptions& options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void Start(std::function<void(const absl::Status&)> answered) { node_->Start(std::move(answered)); }

  // Runs `call` with the endpoint of each engine that is not stopped, on its loop, and waits for
  // its end.
  void ForEachEndpoint(absl::FunctionRef<void(transport::Endpoint&)> call);

  // Leaves the directory, waits at most `limit` for peers that still read from us or lack what we
  // sent, then runs `done`. Drop the machine after.
  void Drain(base::Duration limit, std::function<void()> done);

  // Ends transfers, connections (peers see a disconnect) and the engines' loops.
  void StopEngines();

  store::Store& store() { return *store_; }
  const store::Store& store() const { return *store_; }
  Node& node() { return *node_; }
  const Node& node() const { return *node_; }
  directory::Directory& directory() { return directory_->directory(); }

  size_t engines() const { return engines_.size(); }
  Engine& engine(size_t number) { return engines_[number]->engine(); }
  // nullptr: stopped. Its counters may be read from any thread.
  transport::Endpoint* endpoint(size_t engine) const { return engines_[engine]->endpoint(); }

 private:
  // An engine with its loop: local, or threaded with its host.
  struct Place {
    std::unique_ptr<EngineLoop> own;  // null: it shares the control loop
    std::unique_ptr<LocalEngine> local;
    std::unique_ptr<ThreadedEngine> threaded;
    std::unique_ptr<EngineHost> host;  // null: stopped

    Engine& engine() const { return local != nullptr ? static_cast<Engine&>(*local) : *threaded; }
    transport::Endpoint* endpoint() const {
      if (local != nullptr) return local->open() ? &local->endpoint() : nullptr;
      return host == nullptr ? nullptr : &host->endpoint();
    }
  };

  explicit Machine(base::EventLoop& control) : control_(control) {}
  absl::Status OpenEngines(MachineParts& parts, const MachineOptions& options);
  absl::Status OpenLocal(Place& place, const EndpointParts& parts, size_t max_calls);
  absl::Status OpenThreaded(Place& place, const EndpointParts& parts, size_t max_calls);
  void CheckDrained();
  void DrainEngines();

  base::EventLoop& control_;
  std::unique_ptr<store::Store> store_;
  std::vector<std::unique_ptr<Place>> engines_;
  std::unique_ptr<DirectoryHost> directory_;
  std::unique_ptr<Node> node_;
  std::function<void()> drained_;
  base::Time drain_until_;
  base::Timer drain_timer_;
  size_t engines_to_drain_ = 0;
};

}  // namespace tokamak::node
