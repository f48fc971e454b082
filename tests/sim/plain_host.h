// A host at a fabric without any protocol: it sends single packets and remembers what came.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/fabric.h"
#include "sim/time/sim_loop.h"

namespace tokamak::sim {

inline verbs::Address MakeAddress(uint8_t host) {
  verbs::Address address;
  address.ip[10] = address.ip[11] = 0xff;
  address.ip[12] = 10;
  address.ip[15] = host;
  return address;
}

struct Arrival {
  base::Time time;
  uint32_t psn;
  bool corrupt;
  uint8_t from;
};

// A NIC of few words: remembers what came.
struct PlainHost {
  PlainHost(Scheduler& scheduler, verbs::soft::Fabric& fabric, uint8_t number)
      : address(MakeAddress(number)), loop(scheduler) {
    Plug(fabric);
  }

  void Plug(verbs::soft::Fabric& fabric) {
    port = fabric
               .Open(loop, address,
                     {[this](absl::Span<const verbs::soft::Packet> packets) {
                        ++batches;
                        for (const verbs::soft::Packet& packet : packets) Take(packet);
                      },
                      [] {}})
               .value();
  }

  void Take(const verbs::soft::Packet& packet) {
    arrivals.push_back({loop.Now(), packet.psn, packet.corrupt, packet.peer.ip[15]});
    for (uint32_t i = 0; i < packet.slices; ++i) {
      for (uint32_t j = 0; j < packet.payload[i].length; ++j) {
        EXPECT_EQ(packet.payload[i].data[j], static_cast<uint8_t>(packet.psn));
      }
    }
    if (trace != nullptr) {
      trace->Record({loop.Now(), base::TraceKind::kPacketReceived, address.ip[15], packet.psn, packet.corrupt});
    }
  }

  void Send(const PlainHost& to, uint32_t psn, uint32_t length = 64) {
    const std::vector<uint8_t> payload(length, static_cast<uint8_t>(psn));
    verbs::soft::Packet packet;
    packet.opcode = verbs::soft::PacketOpcode::kSendOnly;
    packet.psn = psn;
    packet.peer = to.address;
    packet.slices = 2;
    packet.payload[0] = {payload.data(), length / 3};
    packet.payload[1] = {payload.data() + length / 3, length - length / 3};
    ASSERT_EQ(port->Send({&packet, 1}), 1u);
  }

  std::vector<uint32_t> psns() const {
    std::vector<uint32_t> result;
    for (const Arrival& arrival : arrivals) result.push_back(arrival.psn);
    return result;
  }

  const verbs::Address address;
  SimLoop loop;
  base::Trace* trace = nullptr;
  std::vector<Arrival> arrivals;
  int batches = 0;
  std::unique_ptr<verbs::soft::Port> port;
};

}  // namespace tokamak::sim
