#include "sim/fabric/switch/route_table.h"

namespace tokamak::sim {

uint32_t RouteTable::AddGroup(const std::vector<uint32_t>& ports) {
  sets_.push_back({static_cast<uint32_t>(ports_.size()), static_cast<uint32_t>(ports.size())});
  ports_.insert(ports_.end(), ports.begin(), ports.end());
  return static_cast<uint32_t>(sets_.size() - 1);
}

}  // namespace tokamak::sim
