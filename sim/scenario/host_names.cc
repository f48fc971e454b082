#include "sim/scenario/host_names.h"

#include "absl/strings/str_cat.h"

namespace tokamak::sim {

HostNames::HostNames(const Topology& topology) {
  for (const Topology::Host& host : topology.hosts) {
    for (size_t port = 0; port < host.addresses.size(); ++port) {
      const std::string full = absl::StrCat(host.name, ":", port);
      numbers_[full] = count();
      if (port == 0) numbers_[host.name] = count();
      first_.push_back(port == 0);
      names_.push_back(port == 0 ? host.name : full);
    }
  }
}

absl::StatusOr<uint32_t> HostNames::Find(absl::string_view name) const {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  return absl::InvalidArgumentError(absl::StrCat("the topology has no host '", name, "'; its ", count(), " are called ",
                                                 names_.front(), " to ", names_.back()));
}

absl::StatusOr<uint32_t> HostNames::FindHost(absl::string_view name) const {
  absl::StatusOr<uint32_t> found = Find(name);
  if (!found.ok() || first_[*found]) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is one NIC; the store takes whole hosts, as in ", name.substr(0, name.rfind(':'))));
}

}  // namespace tokamak::sim
