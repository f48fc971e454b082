// EngineHost is the engine loop's end of a ThreadedEngine: it owns the transport endpoint, and asks
// the control loop, through mailboxes, what only the node knows.
//
// Thread rule: the engine's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/mailbox.h"
#include "lib/node/engines/engine_messages.h"
#include "lib/node/engines/open_endpoint.h"
#include "lib/node/engines/outbox.h"
#include "lib/node/engines/threaded_engine.h"
#include "lib/transport/endpoint.h"

namespace tokamak::node {

class EngineHost final : public transport::Source {
 public:
  // Opens the endpoint and reports to the node's end, `engine`. Called on the engine's loop, or
  // before it runs. Errors: those of OpenEndpoint. All references must outlive the host.
  static absl::StatusOr<std::unique_ptr<EngineHost>> Open(base::EventLoop& engine_loop, ThreadedEngine& engine,
                                                          const EndpointParts& parts);
  // Ends the endpoint; what is left to report goes to the node's end. Called on the engine's loop,
  // while the control loop stands still.
  ~EngineHost() override;

  transport::Endpoint& endpoint() { return *endpoint_; }

  void Pin(const base::ObjectVersion& version, transport::PinId pin, PinCallback done) override;
  void Unpin(transport::PinId pin) override;

 private:
  class PullSink;
  class Called;  // what the endpoint drops when nobody waits for an answer any more

  EngineHost(base::EventLoop& engine_loop, ThreadedEngine& engine);
  void Handle(const DrainCommand& command);
  void Handle(const PullCommand& command);
  void Handle(const CancelPullCommand& command);
  void Handle(const PinnedCommand& command);
  void Handle(const CallCommand& command);
  void Handle(const CancelCallCommand& command);
  void Handle(const ReplyCommand& command);

  void EndCall(uint64_t token, const absl::StatusOr<absl::Span<const uint8_t>>& reply);
  base::Pending HandleCalled(absl::Span<const uint8_t> request, transport::Reply reply);
  void RefusePins();
  void Report(EngineReport report) { to_control_.Send(std::move(report)); }

  base::EventLoop& loop_;
  ThreadedEngine& engine_;
  base::Mailbox<EngineCommand> from_control_;
  Outbox<EngineReport> to_control_;
  // None is visited in its own order.
  absl::flat_hash_map<transport::PinId, PinCallback> pins_;  // asked for
  absl::flat_hash_map<uint64_t, transport::PullId> pulls_;   // by token
  absl::flat_hash_map<uint64_t, base::Pending> calls_;       // by token
  absl::flat_hash_map<uint64_t, transport::Reply> replies_;  // by number of the call
  std::set<transport::PinId> refused_pins_;                  // of pins_, that the control loop was not asked for
  base::Timer refusing_;
  uint64_t last_called_ = 0;
  std::unique_ptr<transport::Endpoint> endpoint_;  // last: its end drops the sinks
};

}  // namespace tokamak::node
