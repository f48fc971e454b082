// Endpoint is one engine's end of the transport: it pulls objects from peers, serves pulls of
// peers, and carries short calls.
//
// It keeps one connection to each peer that it talks to: a control queue pair for messages
// and eager data, and one or more bulk queue pairs for one-sided transfers, on each of its
// rails (devices). The protocol of a transfer is chosen by size (policy.h); the messages are
// drawn in docs/transport.md. It is handed devices and a loop, and knows nothing of stores,
// threads or clocks.
//
// Callbacks (of sources, sinks and calls) may call the endpoint, but not drop it.
// Thread rule: the engine's loop only. What rails name is shared by engines.
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
  // All references must outlive the endpoint. `source` serves the peers' pulls. kInvalidArgument:
  // options that the devices cannot carry out, or too many rails for them.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Open(base::EventLoop& loop, absl::Span<const Rail> rails,
                                                        Source& source, base::Random random, base::Trace& trace,
                                                        const EndpointOptions& options);
  // With one rail.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Open(base::EventLoop& loop, verbs::Device& device,
                                                        verbs::ProtectionDomain& domain, Registration& registration,
                                                        Source& source, base::Random random, base::Trace& trace,
                                                        const EndpointOptions& options) {
    const Rail rail{device, domain, registration};
    return Open(loop, absl::MakeConstSpan(&rail, 1), source, random, trace, options);
  }

  // Accepts peers' connections at `address` from now on, and on the other rails at their devices'
  // addresses with the same port (any port, where the address is the same). kAlreadyExists: the
  // port is taken.
  virtual absl::Status Listen(const verbs::Address& address) = 0;
  // Where it listens, with the port that was chosen where 0 was asked for.
  virtual verbs::Address address() const = 0;

  // Fetches an object into `sink`, which ends with Done by the deadline, or when nothing has come
  // for `patience`, plus what it takes to make the memory safe. Errors: kNotFound (the owner does
  // not have it), kUnavailable (no connection, or it broke), kDeadlineExceeded, kResourceExhausted
  // (we are at max_transfers, or the owner at what it serves us), kFailedPrecondition (the owner's
  // object has another size), kInvalidArgument (the memory does), kCancelled. What had arrived by
  // then need not be moved again: TransferReport::arrived is where another pull into the same
  // memory may go on.
  virtual PullId StartPull(const PullRequest& request, std::unique_ptr<Sink> sink) = 0;
  // Done comes with kCancelled as soon as the memory is safe. Nothing happens for a pull
  // that is over.
  virtual void CancelPull(PullId pull) = 0;

  // As Call, before all calls that wait for this peer; of such calls the first asked is the first.
  [[nodiscard]] virtual base::Pending CallFirst(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                                base::Duration deadline, CallCallback done) = 0;

  // For an endpoint that is about to be dropped: from now on peers' transfers are refused
  // (kUnavailable), so that they go elsewhere. Runs `done` in a task of its own, as soon as nothing
  // is served and the peers have all that was sent to them: then no transfer is lost by dropping
  // it. A peer that takes nothing delays that, until its connection ends. Calls are answered until
  // the end; one that is still being answered, as a question that is held, delays nothing.
  virtual void Drain(std::function<void()> done) = 0;

  // Who answers the peers' calls; without a handler they are refused.
  virtual void SetCallHandler(CallHandler handler) = 0;

  virtual const EndpointCounters& counters() const = 0;
  // On the endpoint's loop.
  virtual EndpointUse use() const = 0;
};

}  // namespace tokamak::transport
