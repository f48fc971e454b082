// OpenEndpoint opens the transport endpoint of an engine, listening, within the bounds of engines.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/transport/endpoint.h"
#include "lib/transport/memory/rail.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

// The parts of an engine's endpoint. All that `rails` name must outlive it.
struct EndpointParts {
  absl::Span<const transport::Rail> rails;  // used during the opening only
  verbs::Address listen;                    // port 0: any
  base::Random random;
  base::Trace& trace;
  transport::EndpointOptions options;
};

// All references must outlive the endpoint. Called on `loop`, or before it runs. kInvalidArgument:
// options that an engine or the devices cannot carry out; kAlreadyExists: the port is taken.
absl::StatusOr<std::unique_ptr<transport::Endpoint>> OpenEndpoint(base::EventLoop& loop, transport::Source& source,
                                                                  const EndpointParts& parts);

}  // namespace tokamak::node
