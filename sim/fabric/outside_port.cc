#include "sim/fabric/outside_port.h"

#include <algorithm>

#include "sim/fabric/host_interface.h"

namespace tokamak::sim {

OutsidePort::~OutsidePort() { host_.UnplugOutside(); }

OutsidePort::Sent OutsidePort::Send(const OutsideFrame& frame) { return host_.SendOutside(frame); }

uint64_t OutsidePort::queued() const {
  uint64_t most = 0;
  for (uint8_t i = 0; i < kPriorities; ++i) most = std::max(most, host_.egress().queue(i).bytes());
  return most;
}

base::Duration OutsidePort::TimeOf(uint32_t bytes) const {
  return host_.egress().link().parameters().rate.TimeOf(bytes);
}

}  // namespace tokamak::sim
