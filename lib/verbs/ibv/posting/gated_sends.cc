#include "lib/verbs/ibv/posting/gated_sends.h"

#include <algorithm>

namespace tokamak::verbs::ibv {

void GatedSends::Add(const SendRequest& request) {
  gate_.Add(request, ring_.Note(0, request.id, TellingOf(request)));
  ring_.Commit(1);
}

int GatedSends::LetThrough(ibv_qp* queue_pair) {
  SendBatch batch;
  while (gate_.Next() != nullptr) {
    for (const ReadGate::Waiting* next; (next = gate_.Next()) != nullptr; gate_.Pass()) {
      if (!batch.HasRoomFor(std::max<size_t>(next->request.sges.size(), 1))) break;
      AddTo(&batch, *next);
    }
    const Posted posted = batch.PostTo(queue_pair);
    if (posted.accepted < posted.wanted) return posted.error;
  }
  return 0;
}

void GatedSends::AddTo(SendBatch* batch, const ReadGate::Waiting& waiting) const {
  ibv_send_wr& to = AddSend(waiting.request, waiting.position, quirks_.needs_a_piece, batch);
  to.send_flags &= ~static_cast<unsigned int>(IBV_SEND_FENCE);
  if (ring_.telling(waiting.position) == Telling::kNothing) to.send_flags |= IBV_SEND_SIGNALED;
  if (quirks_.garbles_empty_reads && IsEmptyRead(waiting.request)) to.opcode = IBV_WR_RDMA_WRITE;
}

Telling GatedSends::TellingOf(const SendRequest& request) const {
  if (quirks_.garbles_empty_reads && IsEmptyRead(request)) return Telling::kRead;
  if ((request.flags & kSignaled) != 0) return Telling::kAsIs;
  if (request.opcode == Opcode::kRead) return Telling::kNothing;  // the gate waits for it
  uint64_t length = 0;
  for (const Sge& sge : request.sges) length += sge.length;
  const bool borrowed = quirks_.borrows_unsignaled_from != 0 && length >= quirks_.borrows_unsignaled_from;
  return borrowed ? Telling::kNothing : Telling::kAsIs;
}

}  // namespace tokamak::verbs::ibv
