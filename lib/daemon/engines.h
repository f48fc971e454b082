// Engines runs the transport engines of a node: a thread with its own loop, completion queues and buffers for each, or one
// engine on the control loop.
//
// An engine that shares the control loop costs a small transfer less, four crossings between threads on the way of one object;
// but then a copy or a burst of messages delays the node's programs, and more processors do not help. The devices, their protection
// domains and the arena's registrations are shared. Set-up and tear-down cross threads here and nowhere else.
// Thread rule: the control loop's thread.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/trace.h"
#include "lib/client/messages.h"
#include "lib/node/engine.h"
#include "lib/os/loop_thread.h"
#include "lib/transport/endpoint.h"
#include "lib/verbs/verbs.h"

namespace tokamak::daemon {

struct EngineSettings {
  uint32_t count = 1;  // 0: one, without a thread of its own
  os::Detection detection;
  verbs::Address listen;  // engine i listens on port + i
  uint64_t seed = 1;
  transport::EndpointOptions endpoint;
};

class Engines final {
 public:
  // What `rails` name must outlive it.
  static absl::StatusOr<std::unique_ptr<Engines>> Start(base::EventLoop& control_loop,
                                                        absl::Span<const transport::Rail> rails,
                                                        const EngineSettings& settings);
  ~Engines();

  // Ends transfers and connections (peers see them disconnect) and the threads. The links stay, for the node that has them,
  // but nothing comes or goes through them any more.
  void Stop();

  std::vector<node::EngineLink*> links();
  // Reads what the engines have counted; waits for none of them.
  void AddNumbers(std::vector<client::NumberEntry>& numbers);

 private:
  struct Engine {
    explicit Engine(base::EventLoop& control) : control_loop(control), link(control) {}
    base::EventLoop& loop() { return thread == nullptr ? control_loop : thread->loop(); }
    // Runs `call` on its loop, and waits for that.
    void CallOn(absl::FunctionRef<void()> call) { thread == nullptr ? call() : thread->CallOn(call); }

    base::EventLoop& control_loop;
    node::EngineLink link;
    std::unique_ptr<os::LoopThread> thread;  // null: it shares the control loop
    std::unique_ptr<node::EngineHost> host;
  };

  base::NoTrace trace_;
  size_t rails_ = 0;
  std::vector<std::unique_ptr<Engine>> engines_;
};

}  // namespace tokamak::daemon
