// Context is an opened device: its port, its GID, its limits, and its asynchronous events. All
// handles keep it alive.
//
// Thread rule: any thread; constant after Open.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/ibv/async_events.h"
#include "lib/verbs/ibv/completion_channel.h"
#include "lib/verbs/ibv/device.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/ibv/translation/quirks.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

struct CloseDevice {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
};
using OpenedDevice = std::unique_ptr<ibv_context, CloseDevice>;

struct DestroyQueue {
  void operator()(ibv_cq* queue) const { ibv_destroy_cq(queue); }
};
using SparedQueue = std::unique_ptr<ibv_cq, DestroyQueue>;

class Context final {
 public:
  // Errors: see OpenIbvDevice.
  static absl::StatusOr<std::shared_ptr<Context>> Open(const DeviceOptions& options);

  Context(OpenedDevice device, SparedQueue spared, const DeviceOptions& options, const LocalPort& port,
          const Address& address, const Limits& limits, const Quirks& quirks);

  ibv_context* device() const { return device_.get(); }
  const DeviceOptions& options() const { return options_; }
  const std::string& name() const { return name_; }
  const LocalPort& port() const { return port_; }  // at Open
  LinkKind link() const { return port_.link; }
  const Address& address() const { return address_; }  // its port is 0
  const Limits& limits() const { return limits_; }
  const Quirks& quirks() const { return quirks_; }
  AsyncEvents& events() { return events_; }
  CompletionChannels& completion_channels() { return completion_channels_; }

  // Returns the completion vector of this thread's next completion queue: in turn those that
  // interrupt the processors on which it runs (vectors.h), beginning with one that depends on the
  // process.
  int NextVector();

  // Takes the errno, or 0, of a registration with relaxed ordering. Logs the first of either.
  void NoteRelaxedOrdering(int error);

  // Returns the present port, asking the kernel: its MTU, its LID and its GID's index may change.
  // If the GID itself has gone, another takes its place with Exchange::kTcp, where each connection
  // sends it.
  LocalPort PortNow() const;

 private:
  const OpenedDevice device_;
  const SparedQueue spared_;  // see SpareForbiddenKey; null except for siw
  const DeviceOptions options_;
  const std::string name_;
  const LocalPort port_;
  const Address address_;
  const Limits limits_;
  const Quirks quirks_;
  const std::vector<std::vector<int>> vector_processors_;  // of each vector, at Open; or empty
  std::atomic<uint32_t> next_vector_;
  std::atomic<bool> told_ordering_{false};
  CompletionChannels completion_channels_;
  AsyncEvents events_;
};

}  // namespace tokamak::verbs::ibv
