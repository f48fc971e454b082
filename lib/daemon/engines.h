// Engines runs the transport engines of a node: a thread with its own loop, completion queues and buffers for each.
//
// The device, its protection domain and the arena's registration are shared. Set-up and tear-down cross threads here and
// nowhere else.
// Thread rule: the control loop's thread.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/trace.h"
#include "lib/client/messages.h"
#include "lib/node/engine.h"
#include "lib/os/loop_thread.h"
#include "lib/transport/endpoint.h"
#include "lib/verbs/verbs.h"

namespace tokamak::daemon {

struct EngineSettings {
  uint32_t count = 1;
  os::Detection detection;
  verbs::Address listen;  // engine i listens on port + i
  uint64_t seed = 1;
  transport::EndpointOptions endpoint;
};

class Engines final {
 public:
  // References must outlive it.
  static absl::StatusOr<std::unique_ptr<Engines>> Start(base::EventLoop& control_loop, verbs::Device& device,
                                                        verbs::ProtectionDomain& domain,
                                                        transport::Registration& registration,
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
    explicit Engine(base::EventLoop& control_loop, uint32_t index, os::Detection detection);
    node::EngineLink link;
    os::LoopThread thread;
    std::unique_ptr<node::EngineHost> host;
  };

  base::NoTrace trace_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

}  // namespace tokamak::daemon
