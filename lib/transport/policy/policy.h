// Policy chooses a transfer's protocol by the object's size: a table of thresholds, measured on the
// very link.
//
// `tok tune` measures one for a link and writes it to a file that the daemon loads
// (lib/daemon/flags/policy_file.h). Each kind of device has a built-in one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/transport/object_access.h"

namespace tokamak::transport {

// Most steps of a table. A measured one has a handful.
constexpr size_t kMaxPolicySteps = 64;

// Kinds of device with a built-in table each, the slowest for the processor first.
enum class DeviceKind {
  kSoftware,  // our software NIC
  kKernel,    // the kernel's, without hardware: rdma_rxe, siw
  kHardware,
};

class Policy final {
 public:
  struct Step {
    uint64_t size_at_most;  // bytes of data and metadata together
    Protocol protocol;
  };

  // The built-in table for an unknown device: that of kKernel.
  Policy();

  static Policy BuiltIn(DeviceKind kind);

  // `steps`: at most kMaxPolicySteps, in rising order of size; the last must reach UINT64_MAX.
  // kInvalidArgument names the wrong one.
  static absl::StatusOr<Policy> FromSteps(std::vector<Step> steps);

  // Parses the form of flags and files: "eager:32KiB,read" is eager up to 32 KiB, read above.
  static absl::StatusOr<Policy> Parse(absl::string_view text);
  std::string ToString() const;

  // Returns the protocol for `size` bytes, never kAuto.
  Protocol Choose(uint64_t size) const;

  absl::Span<const Step> steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

// Parses "eager", "read" or "write"; kInvalidArgument names them.
absl::StatusOr<Protocol> ParseProtocol(absl::string_view text);

}  // namespace tokamak::transport
