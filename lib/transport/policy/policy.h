// Policy picks a transfer's protocol by the object's size: a table of thresholds that was measured
// on the very link.
//
// `tok tune` measures one for a link and writes it to a file that the daemon loads
// (lib/daemon/flags/policy_file.h). Without it there is a built-in one for each kind of device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/transport/object_access.h"

namespace tokamak::transport {

// Steps of a table. One that was measured has a handful.
constexpr size_t kMaxPolicySteps = 64;

// What a device is, as far as built-in tables differ; the one that is slower for the processor
// first.
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

  // The built-in table where nothing is known of the device: that of kKernel.
  Policy();

  static Policy BuiltIn(DeviceKind kind);

  // At most kMaxPolicySteps, in rising order of size; the last must reach UINT64_MAX.
  // kInvalidArgument says which is wrong.
  static absl::StatusOr<Policy> FromSteps(std::vector<Step> steps);

  // "eager:32KiB,read" : eager up to 32 KiB, read above. The text form of flags and files.
  static absl::StatusOr<Policy> Parse(absl::string_view text);
  std::string ToString() const;

  // What moves `size` bytes. Never kAuto.
  Protocol Choose(uint64_t size) const;

  absl::Span<const Step> steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

// "eager", "read" or "write"; kInvalidArgument names them.
absl::StatusOr<Protocol> ParseProtocol(absl::string_view text);

}  // namespace tokamak::transport
