// GatedSends are the sends of a queue pair whose provider breaks fences (Quirks::breaks_fences):
// each is accepted at once, and goes to the provider when it may pass a ReadGate.
//
// The provider is given other requests than ours where its quirks demand that: without a fence,
// signaled though the program did not ask, or a write instead of an empty READ. So its successes
// are not always the program's.
//
// Law: requests reach the provider in the order of Add.
// Thread rule: the queue pair's thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "lib/verbs/ibv/posting/posting.h"
#include "lib/verbs/ibv/posting/read_gate.h"
#include "lib/verbs/ibv/posting/work_ring.h"
#include "lib/verbs/ibv/translation/quirks.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

class GatedSends final {
 public:
  // `ring` is that of the queue pair's sends, and outlives it.
  GatedSends(const Quirks& quirks, const QueueBounds& bounds, WorkRing& ring)
      : quirks_(quirks), ring_(ring), gate_(ring.depth(), bounds) {}

  // See ReadGate.
  void Open(uint32_t reads) { gate_.Open(reads); }
  void Close() { gate_.Close(); }
  bool empty() const { return gate_.empty(); }

  // Posts a checked request to the ring, which has room. It waits.
  void Add(const SendRequest& request);

  // Gives the provider the requests that may pass. Returns 0, or an errno if it refused one: it got
  // no more than it has room for, so it has ended, or is broken.
  [[nodiscard]] int LetThrough(ibv_qp* queue_pair);

  // Notes that the request of this completion, a success, has been carried out. Returns true if
  // others may pass now.
  [[nodiscard]] bool Done(const ibv_wc& done) {
    if (done.opcode != IBV_WC_RDMA_READ) return false;
    gate_.ReadCame();
    return true;
  }

  // Returns true if the program did not ask for that completion.
  bool IsUnasked(const ibv_wc& done) const { return ring_.telling(done.wr_id) == Telling::kNothing; }

 private:
  Telling TellingOf(const SendRequest& request) const;
  void AddTo(SendBatch* batch, const ReadGate::Waiting& waiting) const;

  const Quirks quirks_;
  WorkRing& ring_;
  ReadGate gate_;
};

}  // namespace tokamak::verbs::ibv
