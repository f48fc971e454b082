// Faults of a program's devices besides those of packets (soft::FabricFaults), to test the program:
// a request that fails, and a port that goes down.
//
// Thread rule: none, values.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/time.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::kernel {

// Completes one send request with `status`, in its turn but not carried out; its queue pair is in
// Error.
struct RequestFault {
  uint64_t number = 0;  // in the order taken by the process's devices, from 1; 0: none
  CompletionStatus status = CompletionStatus::kRetryExceeded;

  // Parses "N" or "N:STATUS". kInvalidArgument lists the statuses.
  static absl::StatusOr<RequestFault> Parse(absl::string_view text);
  std::string ToString() const;  // for Parse
};

// The first device's, which carries no packet meanwhile.
struct PortFault {
  base::Duration after;  // since opening the device; zero: stays up
  base::Duration lasts;  // then up again; zero: stays down

  bool any() const { return after > base::Duration(); }

  // Parses "AFTER" or "AFTER:FOR", times above zero.
  static absl::StatusOr<PortFault> Parse(absl::string_view text);
  std::string ToString() const;  // for Parse
};

}  // namespace tokamak::verbs::kernel
