#include "lib/verbs/ibv/posting/read_gate.h"

#include <algorithm>

#include "lib/base/check.h"

namespace tokamak::verbs::ibv {
namespace {

bool IsCountedRead(const SendRequest& request) { return request.opcode == Opcode::kRead && !IsEmptyRead(request); }

}  // namespace

bool IsEmptyRead(const SendRequest& request) {
  return request.opcode == Opcode::kRead &&
         std::all_of(request.sges.begin(), request.sges.end(), [](const Sge& sge) { return sge.length == 0; });
}

ReadGate::ReadGate(uint32_t depth, const QueueBounds& bounds)
    : depth_(depth),
      max_sges_(bounds.max_sges),
      max_inline_(bounds.max_inline),
      places_(depth_),
      pieces_(depth_ * max_sges_),
      inline_bytes_(depth_ * max_inline_) {}

void ReadGate::Open(uint32_t reads) { most_reads_ = std::max(reads, 1u); }

void ReadGate::Close() {
  most_reads_ = 0;
  passed_ = added_;
}

void ReadGate::Add(const SendRequest& request, uint64_t position) {
  CHECK_LT(added_ - passed_, depth_);
  const size_t place = added_++ % depth_;
  Waiting& to = places_[place];
  to.position = position;
  to.request = request;
  Sge* const pieces = pieces_.data() + place * max_sges_;
  std::copy(request.sges.begin(), request.sges.end(), pieces);
  to.request.sges = absl::MakeConstSpan(pieces, request.sges.size());
  if ((request.flags & kInline) == 0) return;
  uint8_t* bytes = inline_bytes_.data() + place * max_inline_;
  for (size_t i = 0; i < request.sges.size(); ++i) {
    const Sge& from = request.sges[i];
    std::copy_n(from.address, from.length, bytes);
    pieces[i].address = bytes;
    bytes += from.length;
  }
}

const ReadGate::Waiting* ReadGate::Next() const {
  if (empty() || most_reads_ == 0) return nullptr;
  const Waiting& next = places_[passed_ % depth_];
  const bool joins = IsCountedRead(next.request) && (next.request.flags & kFence) == 0;
  return reads_ == 0 || (joins && reads_ < most_reads_) ? &next : nullptr;
}

void ReadGate::Pass() {
  const Waiting* const next = Next();
  CHECK(next != nullptr);
  if (IsCountedRead(next->request)) ++reads_;
  ++passed_;
}

void ReadGate::ReadCame() {
  CHECK_GT(reads_, 0u);
  --reads_;
}

}  // namespace tokamak::verbs::ibv
