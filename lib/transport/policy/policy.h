// Policy chooses a transfer's protocol by the object's size: a table of thresholds, measured on the
// very link.
//
// `tok tune` measures one and writes it to a file for the daemon (lib/daemon/flags/policy_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/transport/object_access.h"

namespace tokamak::transport {

constexpr size_t kMaxPolicySteps = 64;

enum class DeviceKind {
  kSoftware,  // our software NIC
  kKernel,    // the kernel's, without hardware: rdma_rxe, siw
  kHardware,
};

class Policy final {
 public:
  struct Step {
    uint64_t size_at_most;  // bytes, with metadata
    Protocol protocol;
  };

  // kKernel's table.
  Policy();

  static Policy BuiltIn(DeviceKind kind);

  // At most kMaxPolicySteps, by rising size; the last reaches UINT64_MAX. kInvalidArgument names
  // the wrong one.
  static absl::StatusOr<Policy> FromSteps(std::vector<Step> steps);

  // "eager:32KiB,read" is eager up to 32 KiB, read above.
  static absl::StatusOr<Policy> Parse(absl::string_view text);
  std::string ToString() const;

  // Never kAuto.
  Protocol Choose(uint64_t size) const;

  absl::Span<const Step> steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

// kInvalidArgument: not "eager", "read" or "write".
absl::StatusOr<Protocol> ParseProtocol(absl::string_view text);

}  // namespace tokamak::transport
