// ServedRequests remembers a responder's last READs and atomics: a peer that missed an answer may
// ask again.
//
// A packet with an old PSN proves nothing: any peer can send one. Only a request that was served
// before, or its rest, is answered, so a duplicate can neither probe keys nor draw more than was
// granted once. No more are remembered than a peer may have outstanding.
// Thread rule: the NIC's mutex.
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

  // Returns the response that `packet`, a READ or atomic of this sequence, asks for again, whole or
  // in part; else null.
  const Response* Find(const Packet& packet, uint64_t sequence, uint32_t mtu) const;

 private:
  std::vector<Response> ring_;  // responses of no packets are free
  size_t next_ = 0;
};

}  // namespace tokamak::verbs::soft
