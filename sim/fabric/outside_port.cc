#include "sim/fabric/outside_port.h"

#include "sim/fabric/host_interface.h"

namespace tokamak::sim {

OutsidePort::~OutsidePort() { host_.UnplugOutside(); }

OutsidePort::Sent OutsidePort::Send(const OutsideFrame& frame) { return host_.SendOutside(frame); }

}  // namespace tokamak::sim
