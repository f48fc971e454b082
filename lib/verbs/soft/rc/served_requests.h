// ServedRequests remembers the last READs and atomics that a responder has carried out: what a
// peer that missed an answer may ask for again.
//
// Any peer can send a packet with an old PSN, so such a packet proves nothing. Answered is only
// what was asked for and served before, or the rest of it: a duplicate can then neither find out
// which keys exist nor draw more than was granted once. A peer has at most as many READs and
// atomics outstanding as are served at once, so it has no reason to ask for one that is much older.
//
// Thread rule: under the NIC's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/rc/response_queue.h"

namespace tokamak::verbs::soft {

class ServedRequests final {
 public:
  // Forgets all; from now on the last `count` are remembered.
  void Reserve(size_t count);

  void Add(const Response& response);

  // The response of which `packet`, a READ or atomic with this sequence, asks for the whole or a
  // part again. Null when it asks for anything else. `mtu` is the connection's.
  const Response* Find(const Packet& packet, uint64_t sequence, uint32_t mtu) const;

 private:
  std::vector<Response> ring_;  // those of no packets are free
  size_t next_ = 0;
};

}  // namespace tokamak::verbs::soft
