// What a program wants to go wrong besides packets (soft::FabricFaults), to see what it makes of
// it: a request that fails, and a port that goes down.
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

// One request to send fails, as hardware's fails: it completes with `status` once those before it
// have, without having been carried out, and its queue pair is in Error.
struct RequestFault {
  uint64_t number = 0;  // as the process's devices take them; 1 is the first, 0 none
  CompletionStatus status = CompletionStatus::kRetryExceeded;

  // "N" or "N:STATUS". kInvalidArgument names the statuses that there are.
  static absl::StatusOr<RequestFault> Parse(absl::string_view text);
  std::string ToString() const;  // which Parse understands
};

// The port of the first device goes down, and nothing passes it.
struct PortFault {
  base::Duration after;  // from when the process opens the device on; zero: it stays up
  base::Duration lasts;  // then it is up again; zero: it is not

  bool any() const { return after > base::Duration(); }

  // "AFTER" or "AFTER:FOR", times above zero.
  static absl::StatusOr<PortFault> Parse(absl::string_view text);
  std::string ToString() const;  // which Parse understands
};

}  // namespace tokamak::verbs::kernel
