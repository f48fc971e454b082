#include "lib/verbs/soft/ud/route_header.h"

#include <cstring>

#include "lib/verbs/datagrams.h"
#include "lib/verbs/soft/packets/ip_header.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

static_assert(kMaxIpHeader == kGlobalRouteHeader);

void WriteRouteHeader(const Packet& packet, const Address& port, uint8_t* out) {
  IpHeaderFields fields;
  fields.source = packet.peer;
  fields.destination = port;
  if (packet.came_to_group()) fields.destination.ip = packet.group;
  fields.traffic_class = TrafficClassOf(packet);
  fields.udp_length = kUdpHeaderLength + DatagramLength(packet);
  uint8_t header[kMaxIpHeader];
  const uint32_t length = WriteIpHeader(fields, header);
  std::memset(out, 0, kGlobalRouteHeader - length);
  std::memcpy(out + kGlobalRouteHeader - length, header, length);
}

}  // namespace tokamak::verbs::soft
