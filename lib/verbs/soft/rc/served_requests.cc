#include "lib/verbs/soft/rc/served_requests.h"

#include "lib/verbs/soft/rc/psn.h"

namespace tokamak::verbs::soft {
namespace {

// A part begins at a packet of the first answer and ends within it.
bool IsPartOf(const Response& served, const Packet& packet, uint64_t sequence, uint32_t mtu) {
  const uint64_t offset = (sequence - served.first) * mtu;
  return packet.rkey == served.key && packet.remote_address == served.address + offset &&
         packet.dma_length <= served.length - offset && sequence + PacketsFor(packet.dma_length, mtu) <= served.end;
}

}  // namespace

void ServedRequests::Reserve(size_t count) {
  ring_.assign(count, Response());
  next_ = 0;
}

void ServedRequests::Add(const Response& response) {
  ring_[next_] = response;
  next_ = (next_ + 1) % ring_.size();
}

const Response* ServedRequests::Find(const Packet& packet, uint64_t sequence, uint32_t mtu) const {
  const bool read = packet.opcode == PacketOpcode::kReadRequest;
  for (const Response& served : ring_) {
    if (sequence < served.first || sequence >= served.end) continue;
    if (served.atomic == read) return nullptr;
    if (read) return IsPartOf(served, packet, sequence, mtu) ? &served : nullptr;
    return packet.rkey == served.key && packet.remote_address == served.address ? &served : nullptr;
  }
  return nullptr;
}

}  // namespace tokamak::verbs::soft
