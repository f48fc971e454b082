// Policy picks a transfer's protocol by the object's size: a table of thresholds that was measured
// on the very link.
//
// The built-in table holds what was measured on loopback; `tok tune` (later) writes one for a link
// and the daemon loads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/transport/object_access.h"

namespace tokamak::transport {

class Policy final {
 public:
  struct Step {
    uint64_t size_at_most;  // bytes of data and metadata together
    Protocol protocol;
  };

  // The built-in table.
  Policy();

  // Steps in rising order of size; the last must reach UINT64_MAX. kInvalidArgument says
  // which is wrong.
  static absl::StatusOr<Policy> FromSteps(std::vector<Step> steps);

  // "eager:32KiB,read" : eager up to 32 KiB, read above. The text form of flags and files.
  static absl::StatusOr<Policy> Parse(absl::string_view text);
  std::string ToString() const;

  // What moves `size` bytes. Never kAuto.
  Protocol Choose(uint64_t size) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace tokamak::transport
