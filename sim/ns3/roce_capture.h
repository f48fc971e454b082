// SPDX-License-Identifier: GPL-2.0-only
//
// RoceCapture writes the frames of one port to a file that tshark and Wireshark read: Ethernet, IP
// and UDP around the software NIC's wire bytes, ICRC included, and PFC frames.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/verbs/soft/packets/packet.h"
#include "ns3/mac48-address.h"
#include "ns3/pcap-file-wrapper.h"
#include "ns3/ptr.h"
#include "sim/fabric/link/pause_frame.h"

namespace tokamak::sim {

class RoceCapture final {
 public:
  struct End {
    verbs::Address address;
    ns3::Mac48Address mac;
  };

  // An unwritable file ends the program with a message.
  explicit RoceCapture(const std::string& path);

  // Slices without memory are written as zeros.
  void Write(const verbs::soft::Packet& packet, const End& from, const End& to);
  void WritePause(const PauseFrame& pause, const ns3::Mac48Address& from);

 private:
  uint8_t* StartFrame(const ns3::Mac48Address& to, const ns3::Mac48Address& from, uint16_t type);
  void WriteFrame(size_t length);

  ns3::Ptr<ns3::PcapFileWrapper> file_;
  std::vector<uint8_t> bytes_;
};

}  // namespace tokamak::sim
