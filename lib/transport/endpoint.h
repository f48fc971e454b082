// Endpoint is one engine's end of the transport: it pulls objects from peers, serves pulls of
// peers, and carries short calls.
//
// It keeps one connection to each peer that it talks to: a control queue pair for messages and
// eager data, and on each of its rails (devices) one or more bulk queue pairs for one-sided
// transfers. The size of an object decides the protocol (policy.h); docs/transport.md draws the
// messages. It is handed devices and a loop, and knows nothing of stores, threads or clocks.
//
// Callbacks (of sources, sinks and calls) may call the endpoint, but not drop it. Thread rule: the
// engine's loop only. Engines share the objects that rails name.
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
  static absl::StatusOr<std::unique_ptr<Endpoint>> Open(base::EventLoop& loop, verbs::Device& device,
                                                        verbs::ProtectionDomain& domain, Registration& registration,
                                                        Source& source, base::Random random, base::Trace& trace,
                                                        const EndpointOptions& options) {
    const Rail rail{device, domain, registration};
    return Open(loop, absl::MakeConstSpan(&rail, 1), source, random, trace, options);
  }

  // Accepts peers' connections at `address`, and on the other rails at their devices' addresses
  // with the same port (any port where the address is the same). kAlreadyExists: the port is taken.
  virtual absl::Status Listen(const verbs::Address& address) = 0;
  // Returns the address it listens at, with the chosen port if 0 was asked for.
  virtual verbs::Address address() const = 0;

  // Fetches an object into `sink`. Done runs by the deadline, or when nothing has come for
  // `patience`, plus the time to make the memory safe. Errors: kNotFound (the owner does not have
  // it), kUnavailable (no connection, or it broke), kDeadlineExceeded, kResourceExhausted (we are
  // at max_transfers, or the owner at its bound for us), kFailedPrecondition (the owner's object
  // has another size), kInvalidArgument (the memory has another size), kCancelled. After an error,
  // another pull into the same memory may go on from TransferReport::arrived.
  virtual PullId StartPull(const PullRequest& request, std::unique_ptr<Sink> sink) = 0;
  // Cancels the pull: Done runs with kCancelled as soon as the memory is safe. Does nothing for a
  // pull that is over.
  virtual void CancelPull(PullId pull) = 0;

  // As Call, but before all calls that wait for this peer; several of them keep their order.
  [[nodiscard]] virtual base::Pending CallFirst(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                                base::Duration deadline, CallCallback done) = 0;

  // Prepares to drop the endpoint: refuses further transfers of peers (kUnavailable), so that they
  // go elsewhere. Runs `done` in a task of its own, once nothing is served and the peers have
  // everything that was sent to them: dropping the endpoint then loses no transfer. A peer that
  // receives nothing delays `done` until its connection ends. Calls are answered until the end;
  // unanswered ones delay nothing.
  virtual void Drain(std::function<void()> done) = 0;

  // Sets the handler of the peers' calls; without one they are refused.
  virtual void SetCallHandler(CallHandler handler) = 0;

  virtual const EndpointCounters& counters() const = 0;
  virtual EndpointUse use() const = 0;
};

}  // namespace tokamak::transport
