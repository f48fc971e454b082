// Frame is what travels on a simulated wire: a RoCEv2 packet in Ethernet, or a PFC pause frame.
//
// Frames come from a FramePool and are linked into whatever queue they are in, so a fabric that has
// warmed up allocates nothing. Whoever holds a frame hands it on or gives it back to the pool.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/time.h"
#include "lib/verbs/soft/packet.h"
#include "sim/fabric/pause_frame.h"

namespace tokamak::sim {

struct Frame {
  Frame* next = nullptr;          // in the queue that it is in
  base::Time arrives;             // at the end of the link that it is on
  uint32_t wire_bytes = 0;        // of the link's time: with preamble, check sum and gap
  uint32_t source = 0;            // numbers of host interfaces, see AddressBook
  uint32_t destination = 0;       //
  uint16_t destination_port = 0;  // UDP
  uint32_t flow = 0;              // a hash of the five-tuple, the same for all packets of a flow
  uint16_t ingress = 0;           // the port by which it came into the switch that it is in
  uint8_t priority = 0;           // 0 to 7
  bool is_pause = false;          // then `pause` is all that it carries
  PauseFrame pause;
  verbs::soft::Packet packet;  // its payload lies in `bytes`, or nowhere where it has no memory
  std::vector<uint8_t> bytes;

  // RFC 3168: whether both ends understand marks, and the mark.
  bool ecn_capable() const { return packet.ecn != verbs::soft::Ecn::kNotCapable; }
  void MarkCongestion() { packet.ecn = verbs::soft::Ecn::kMarked; }
};

// The most that EthernetBytes (lib/verbs/soft/wire.h), which is a packet's wire_bytes, can be for
// this path MTU.
uint32_t MostWireBytes(uint32_t mtu);

// Makes `frame` carry `packet`: the headers, and a copy of the payload. What has no memory stays so.
void CopyPacket(const verbs::soft::Packet& packet, Frame* frame);

}  // namespace tokamak::sim
