// RouteTable maps a destination to a port of a switch. Among equally good ones the flow's hash and
// the switch's own seed choose, so all packets of a flow take one way.
//
// Seeds differ: else flows from one port of the tier below would choose alike.
#pragma once

#include <cstdint>
#include <vector>

namespace tokamak::sim {

// MurmurHash3's finaliser.
constexpr uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 33)) * 0xff51afd7ed558ccd;
  z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53;
  return z ^ (z >> 33);
}

class RouteTable final {
 public:
  static constexpr uint32_t kNoPort = UINT32_MAX;

  RouteTable() = default;
  RouteTable(uint64_t seed, uint32_t destinations) : seed_(seed), groups_(destinations) {}

  // Returns a number for Set.
  uint32_t AddGroup(const std::vector<uint32_t>& ports);
  void Set(uint32_t destination, uint32_t group) { groups_[destination] = group; }

  // Returns kNoPort if there is no way.
  uint32_t Pick(uint32_t destination, uint32_t flow) const {
    if (destination >= groups_.size()) return kNoPort;
    const Group& group = sets_[groups_[destination]];
    if (group.count == 1) return ports_[group.first];
    if (group.count == 0) return kNoPort;
    const uint64_t hash = MixBits(seed_ ^ flow) >> 32;
    return ports_[group.first + static_cast<uint32_t>(hash * group.count >> 32)];
  }

 private:
  struct Group {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  uint64_t seed_ = 0;
  std::vector<uint32_t> groups_;         // by destination, a place in sets_
  std::vector<Group> sets_ = {Group{}};  // the first has no ports
  std::vector<uint32_t> ports_;
};

}  // namespace tokamak::sim
