// CheckOptions checks the options of an endpoint against its devices.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/transport/endpoint_options.h"
#include "lib/transport/memory/rail.h"

namespace tokamak::transport {

// Returns `options`, reduced to what all devices support. kInvalidArgument: out of range, or beyond
// a device.
absl::StatusOr<EndpointOptions> CheckOptions(const EndpointOptions& options, absl::Span<const Rail> rails);

}  // namespace tokamak::transport
