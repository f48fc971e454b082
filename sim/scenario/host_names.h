// HostNames finds the interfaces of a topology by name: "host3", or "host3:1" for a host's second
// NIC.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sim/fabric/topology/topology.h"

namespace tokamak::sim {

class HostNames final {
 public:
  explicit HostNames(const Topology& topology);

  // kInvalidArgument: none; the text names some.
  absl::StatusOr<uint32_t> Find(absl::string_view name) const;

  // Finds a host's first interface: "host3".
  absl::StatusOr<uint32_t> FindHost(absl::string_view name) const;
  bool IsFirst(uint32_t interface) const { return first_[interface]; }

  uint32_t HostOf(uint32_t interface) const {
    return static_cast<uint32_t>(std::count(first_.begin(), first_.begin() + interface + 1, true)) - 1;
  }

  const std::string& NameOf(uint32_t interface) const { return names_[interface]; }
  uint32_t count() const { return static_cast<uint32_t>(names_.size()); }

 private:
  std::vector<std::string> names_;  // in reports: without ":0"
  std::vector<bool> first_;         // the first of its host
  std::map<std::string, uint32_t, std::less<>> numbers_;
};

}  // namespace tokamak::sim
