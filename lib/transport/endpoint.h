// Endpoint is one engine's end of the transport: it pulls objects from peers, serves pulls of
// peers, and carries short calls.
//
// It keeps one connection to each peer (docs/transport.md); the object's size decides the protocol
// (policy.h). Callbacks (of sources, sinks and calls) may call the endpoint, but not drop it.
// Thread rule: the engine's loop only; engines share the objects that rails name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/security/cluster_secret.h"
#include "lib/transport/caller.h"
#include "lib/transport/endpoint_counters.h"
#include "lib/transport/endpoint_options.h"
#include "lib/transport/memory/rail.h"
#include "lib/transport/memory/registration.h"
#include "lib/transport/object_access.h"
#include "lib/transport/pull_request.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class Endpoint : public Caller {
 public:
  // All references must outlive the endpoint. kInvalidArgument: options or rails beyond the
  // devices.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Open(base::EventLoop& loop, absl::Span<const Rail> rails,
                                                        Source& source, base::Random random, base::Trace& trace,
                                                        const EndpointOptions& options);
  static absl::StatusOr<std::unique_ptr<Endpoint>> Open(base::EventLoop& loop, verbs::Device& device,
                                                        verbs::ProtectionDomain& domain, Registration& registration,
                                                        Source& source, base::Random random, base::Trace& trace,
                                                        const EndpointOptions& options) {
    const Rail rail{device, domain, registration};
    return Open(loop, absl::MakeConstSpan(&rail, 1), source, random, trace, options);
  }

  // Accepts connections at `address`, and on the other rails at their devices' addresses with the
  // same port (any port where the address is the same). kAlreadyExists: the port is taken.
  virtual absl::Status Listen(const verbs::Address& address) = 0;
  // Returns it with the chosen port.
  virtual verbs::Address address() const = 0;

  // Fetches an object into `sink`. Done runs by the deadline, or after `patience` without progress,
  // plus the time to make the memory safe. Errors: kNotFound, kUnavailable (no connection, or it
  // broke), kDeadlineExceeded, kResourceExhausted (max_transfers, or the owner's bound for us),
  // kFailedPrecondition (the owner's object has another size), kInvalidArgument (the memory has
  // another size), kCancelled. Another pull may go on from TransferReport::arrived.
  virtual PullId StartPull(const PullRequest& request, std::unique_ptr<Sink> sink) = 0;
  // Has Done run with kCancelled as soon as the memory is safe, unless the pull is over.
  virtual void CancelPull(PullId pull) = 0;

  // As Call, but ahead of the peer's other waiting calls, in order.
  [[nodiscard]] virtual base::Pending CallFirst(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                                base::Duration deadline, CallCallback done) = 0;

  // Replaces the cluster's secrets, for later connections: those that are up go on. Only where the
  // endpoint was opened with secrets; never null.
  virtual void SetSecrets(std::shared_ptr<const security::ClusterSecrets> secrets) = 0;

  // Refuses further transfers of peers (kUnavailable), and runs `done` in a task of its own once
  // nothing is served and everything sent has arrived: dropping the endpoint then loses no
  // transfer. Calls go on, and do not delay it; a peer that receives nothing does until its
  // connection ends.
  virtual void Drain(std::function<void()> done) = 0;

  // Null: peers' calls are refused.
  virtual void SetCallHandler(CallHandler handler) = 0;

  virtual const EndpointCounters& counters() const = 0;
  virtual EndpointUse use() const = 0;
};

}  // namespace tokamak::transport
