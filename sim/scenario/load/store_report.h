// StoreReport is the outcome of a put or a get through the store.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/transport/object_access.h"

namespace tokamak::sim {

struct StoreReport {
  absl::Status status;
  // For a pull; kAuto: the object was here.
  transport::Protocol protocol = transport::Protocol::kAuto;
  std::optional<uint32_t> holder;  // number in the topology
};

}  // namespace tokamak::sim
