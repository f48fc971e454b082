// ServedRequests remembers the last READs and atomics that a responder has carried out: a peer that
// missed an answer may ask for them again.
//
// A packet with an old PSN proves nothing: any peer can send one. Only a request that was served
// before, or its rest, is answered: a duplicate can then neither find out which keys exist nor draw
// more than was granted once. A peer has at most as many READs and atomics outstanding as are
// served at once, so it has no reason to ask for a much older one.
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
  // Forgets all, then remembers the last `count`.
  void Reserve(size_t count);

  void Add(const Response& response);

  // Returns the response that `packet`, a READ or atomic with this sequence, asks for again, whole
  // or in part; else null. `mtu` is the connection's.
  const Response* Find(const Packet& packet, uint64_t sequence, uint32_t mtu) const;

 private:
  std::vector<Response> ring_;  // responses of no packets are free
  size_t next_ = 0;
};

}  // namespace tokamak::verbs::soft
