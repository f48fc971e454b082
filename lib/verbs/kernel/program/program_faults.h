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

// One send request fails: it completes with `status` in its turn, without being carried out, and
// its queue pair is in Error.
struct RequestFault {
  uint64_t number = 0;  // in the order taken by the process's devices, from 1; 0: none
  CompletionStatus status = CompletionStatus::kRetryExceeded;

  // Parses "N" or "N:STATUS". kInvalidArgument lists the statuses.
  static absl::StatusOr<RequestFault> Parse(absl::string_view text);
  std::string ToString() const;  // for Parse
};

// The port of the first device goes down, and carries no packet meanwhile.
struct PortFault {
  base::Duration after;  // since the process opened the device; zero: it stays up
  base::Duration lasts;  // then it is up again; zero: it stays down

  bool any() const { return after > base::Duration(); }

  // Parses "AFTER" or "AFTER:FOR", times above zero.
  static absl::StatusOr<PortFault> Parse(absl::string_view text);
  std::string ToString() const;  // for Parse
};

}  // namespace tokamak::verbs::kernel
