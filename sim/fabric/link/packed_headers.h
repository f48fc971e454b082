// PackedHeaders are a packet's headers as a frame keeps them, as small as possible, since a large
// network has a hundred thousand frames on their way.
#pragma once

#include <cstdint>

#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::sim {

struct PackedHeaders {
  // Rare: atomics' answers, datagrams, immediate data.
  uint64_t original = 0;
  uint32_t qkey = 0;
  uint32_t immediate = 0;

  // One cache line (Frame).
  uint64_t remote_address = 0;
  uint64_t swap_or_add = 0;
  uint64_t compare = 0;
  uint32_t rkey = 0;
  uint32_t dma_length = 0;
  uint32_t destination = 0;
  uint32_t psn = 0;
  uint32_t msn = 0;
  uint32_t source_queue_pair = 0;
  uint16_t pkey = verbs::soft::kDefaultPkey;
  uint16_t source_port = 0;
  uint16_t peer_port = 0;  // of the sender, UDP
  verbs::soft::PacketOpcode opcode = verbs::soft::PacketOpcode::kAcknowledge;
  uint8_t syndrome = 0;
  uint8_t dscp = 0;
  bool solicited = false;
  bool ack_request = false;

  void Pack(const verbs::soft::PacketHeaders& packet) {
    original = packet.original;
    qkey = packet.qkey;
    immediate = packet.immediate;
    remote_address = packet.remote_address;
    swap_or_add = packet.swap_or_add;
    compare = packet.compare;
    rkey = packet.rkey;
    dma_length = packet.dma_length;
    destination = packet.destination;
    psn = packet.psn;
    msn = packet.msn;
    source_queue_pair = packet.source_queue_pair;
    pkey = packet.pkey;
    source_port = packet.source_port;
    opcode = packet.opcode;
    syndrome = packet.syndrome;
    dscp = packet.dscp;
    solicited = packet.solicited;
    ack_request = packet.ack_request;
  }

  // Gives all but the peer's address, the mark and the damage, which are the frame's.
  void Unpack(verbs::soft::PacketHeaders* packet) const {
    packet->original = original;
    packet->qkey = qkey;
    packet->immediate = immediate;
    packet->remote_address = remote_address;
    packet->swap_or_add = swap_or_add;
    packet->compare = compare;
    packet->rkey = rkey;
    packet->dma_length = dma_length;
    packet->destination = destination;
    packet->psn = psn;
    packet->msn = msn;
    packet->source_queue_pair = source_queue_pair;
    packet->pkey = pkey;
    packet->source_port = source_port;
    packet->peer.port = peer_port;
    packet->opcode = opcode;
    packet->syndrome = syndrome;
    packet->dscp = dscp;
    packet->solicited = solicited;
    packet->ack_request = ack_request;
  }
};
static_assert(sizeof(PackedHeaders) == 80, "two frames and their headers in four cache lines");

}  // namespace tokamak::sim
