// AddressBook numbers the interfaces of all hosts of a fabric and knows their IP addresses.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

class AddressBook final {
 public:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  // Returns false, changing nothing, if its IP address is taken.
  [[nodiscard]] bool Add(const verbs::Address& address) {
    if (!numbers_.emplace(address.ip, static_cast<uint32_t>(addresses_.size())).second) return false;
    addresses_.push_back(address);
    return true;
  }

  // Ports do not matter.
  uint32_t NumberOf(const verbs::Address& address) const {
    const auto entry = numbers_.find(address.ip);
    return entry == numbers_.end() ? kUnknown : entry->second;
  }

  const verbs::Address& address(uint32_t number) const { return addresses_[number]; }
  uint32_t size() const { return static_cast<uint32_t>(addresses_.size()); }

 private:
  std::vector<verbs::Address> addresses_;
  absl::flat_hash_map<std::array<uint8_t, 16>, uint32_t> numbers_;
};

}  // namespace tokamak::sim
