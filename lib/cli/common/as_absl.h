// Converts types of the public C++ API (include/tokamak) to absl::Status and base::Duration, as in
// the rest of tok.
#pragma once

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/time.h"
#include "tokamak/status.h"
#include "tokamak/timeout.h"

namespace tokamak::cli {

inline absl::Status AsAbsl(const Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code()), status.message());  // both have gRPC's numbers
}

template <typename T>
absl::StatusOr<T> AsAbsl(Result<T> result) {
  if (!result.ok()) return AsAbsl(result.status());
  return *std::move(result);
}

inline Timeout AsTimeout(base::Duration duration) { return std::chrono::nanoseconds(duration.nanoseconds()); }

}  // namespace tokamak::cli
