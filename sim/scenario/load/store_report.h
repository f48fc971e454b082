// StoreReport says what became of a put or a get through the store.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/transport/object_access.h"

namespace tokamak::sim {

struct StoreReport {
  absl::Status status;
  // Of a get that brought the object here; kAuto: it was here already.
  transport::Protocol protocol = transport::Protocol::kAuto;
  std::optional<uint32_t> holder;  // the host that it came from, by its number in the topology
};

}  // namespace tokamak::sim
