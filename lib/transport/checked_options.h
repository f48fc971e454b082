// CheckOptions holds the options of an endpoint against its devices.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/transport/endpoint_options.h"
#include "lib/transport/memory/rail.h"

namespace tokamak::transport {

// Returns `options` as far as all devices can carry them out. kInvalidArgument: an option beyond its
// range, or one that a device cannot carry out.
absl::StatusOr<EndpointOptions> CheckOptions(const EndpointOptions& options, absl::Span<const Rail> rails);

}  // namespace tokamak::transport
