#include "sim/fabric/link/link.h"

#include "lib/base/check.h"

namespace tokamak::sim {

Link::~Link() {
  while (!flying_.empty()) environment_.frames.Give(flying_.Pop());
}

void Link::SetLoss(const LossOptions& options, const base::Random& random) {
  loss_.reset();
  if (options.any()) loss_ = std::make_unique<LossModel>(options, random);
}

void Link::SetUp(bool up) {
  up_ = up;
  if (!up) DropFlying();
}

void Link::Transmit(Frame* frame) {
  const base::Time now = environment_.loop.Now();
  DCHECK(now >= free_at_) << "the wire is busy";
  free_at_ = now + parameters_.rate.TimeOf(frame->wire_bytes);
  ++counters_.sent;
  counters_.sent_bytes += frame->wire_bytes;
  if (frame->is_pause) ++counters_.pauses_sent;
  if (environment_.observer != nullptr) environment_.observer->OnTransmit(from_, *frame);
  if (!up_) return Drop(frame, DropReason::kLinkDown, &counters_.dropped_down);
  const bool first = flying_.empty();
  flying_.Push(frame, free_at_ + parameters_.delay);
  if (first) arrival_ = environment_.loop.RunAt(flying_.front().arrives, [this] { Arrive(); });
}

void Link::Arrive() {
  Frame* frame = flying_.Pop();
  __builtin_prefetch(frame);
  if (!flying_.empty()) arrival_ = environment_.loop.RunAt(flying_.front().arrives, [this] { Arrive(); });
  if (loss_ == nullptr || frame->is_pause) return Deliver(frame);
  switch (loss_->Judge()) {
    case LossModel::Fate::kLost:
      return Drop(frame, DropReason::kLoss, &counters_.lost);
    case LossModel::Fate::kCorrupt:
      ++counters_.corrupted;
      frame->corrupt = true;
      break;
    case LossModel::Fate::kArrives:
      break;
  }
  Deliver(frame);
}

void Link::Deliver(Frame* frame) {
  ++counters_.delivered;
  to_->Receive(frame, to_port_);
}

void Link::Drop(Frame* frame, DropReason reason, uint64_t* counter) {
  ++*counter;
  if (environment_.observer != nullptr) environment_.observer->OnDrop(from_, *frame, reason);
  environment_.frames.Give(frame);
}

void Link::DropFlying() {
  arrival_.Cancel();
  while (!flying_.empty()) Drop(flying_.Pop(), DropReason::kLinkDown, &counters_.dropped_down);
}

}  // namespace tokamak::sim
