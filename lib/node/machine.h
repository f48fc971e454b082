// Machine is one whole node (store, engines, directory and node), assembled alike for all worlds,
// on given loops.
//
//   arena -> Store      rails (devices) -> engines (EngineHost and EngineLink) -> directory -> Node
//
// Worlds differ only in loops, memory and devices. The first engine shares the control loop: a
// small get runs to completion on one thread. The others, for bulk, have loops of their own.
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
#include "lib/node/engines/engine_host.h"
#include "lib/node/engines/engine_link.h"
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

// Must outlive the machine.
struct MachineParts {
  base::EventLoop& control;
  std::vector<std::unique_ptr<EngineLoop>> bulk;  // none: the first engine moves all
  absl::Span<uint8_t> arena;                      // 64-byte aligned, known to all rails
  absl::Span<const transport::Rail> rails;        // of the first engine; used during Assemble only
  absl::Span<const transport::Rail> bulk_rails;   // of the others; may be the same
  // Opens the directory, given the first engine and this life's random stream.
  std::function<absl::StatusOr<std::unique_ptr<DirectoryHost>>(EngineLink&, base::Random)> directory;
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
  EngineLink& link(size_t engine) { return engines_[engine]->link; }
  // nullptr: stopped. Its counters may be read from any thread.
  transport::Endpoint* endpoint(size_t engine) const {
    return engines_[engine]->host == nullptr ? nullptr : &engines_[engine]->host->endpoint();
  }

 private:
  struct Engine {
    Engine(base::EventLoop& control, size_t max_calls) : link(control, max_calls) {}

    std::unique_ptr<EngineLoop> own;  // null: the control loop
    EngineLink link;
    std::unique_ptr<EngineHost> host;
  };

  explicit Machine(base::EventLoop& control) : control_(control) {}
  absl::Status OpenEngines(MachineParts& parts, const MachineOptions& options);
  void CheckDrained();
  void DrainEngines();

  base::EventLoop& control_;
  std::unique_ptr<store::Store> store_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::unique_ptr<DirectoryHost> directory_;
  std::unique_ptr<Node> node_;
  std::function<void()> drained_;
  base::Time drain_until_;
  base::Timer drain_timer_;
  size_t engines_to_drain_ = 0;
};

}  // namespace tokamak::node
