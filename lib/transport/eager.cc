#include "lib/transport/eager.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::transport {

void EagerOwner::Open(uint64_t transfer, const PinnedObject& object, uint64_t arrived) {
  transfer_ = transfer;
  object_ = object;
  offset_ = arrived;
}

size_t EagerOwner::Next(Header* header, uint8_t* body, size_t room, CopyBudget& budget) {
  header->kind = MessageKind::kChunk;
  header->protocol = Protocol::kEager;
  header->transfer = transfer_;
  header->size = object_.size;
  header->offset = offset_;
  const size_t size = std::min<uint64_t>(room, object_.size.total() - offset_);
  if (size > 0) CopyWithin(budget, loop_, body, object_.address + offset_, size);
  offset_ += size;
  started_ = true;
  return size;
}

absl::Status EagerPuller::Accept(const Message& message, uint32_t slot, bool* hold, CopyBudget& budget) {
  const Header& header = message.header;
  if (!started_) size_ = header.size;
  if (header.size.data != size_.data || header.size.metadata != size_.metadata) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of an object of ", header.size.total(), " bytes among those of ", size_.total()));
  }
  if (header.offset != received_ || (started_ && message.body.empty())) {
    return absl::InvalidArgumentError(absl::StrCat("a chunk at ", header.offset, " where ", received_, " comes next"));
  }
  started_ = true;
  received_ += message.body.size();
  if (have_memory_ && !holding()) {
    if (!message.body.empty())
      CopyWithin(budget, loop_, memory_.data() + copied_, message.body.data(), message.body.size());
    copied_ += message.body.size();
  } else if (!message.body.empty()) {
    held_.push_back({slot, static_cast<uint32_t>(message.body.size())});
    *hold = true;
  }
  return absl::OkStatus();
}

void EagerPuller::SetMemory(absl::Span<uint8_t> memory) {
  memory_ = memory;
  have_memory_ = true;
}

bool EagerPuller::CopyHeld(ControlChannel& channel, CopyBudget& budget) {
  DCHECK(have_memory_);
  for (; holding(); ++next_held_) {
    const Held& held = held_[next_held_];
    if (!budget.Covers(held.size)) return true;
    CopyWithin(budget, loop_, memory_.data() + copied_, channel.Body(held.slot, held.size).data(), held.size);
    copied_ += held.size;
    channel.Release(held.slot);
  }
  held_.clear();
  next_held_ = 0;
  return false;
}

void EagerPuller::DropHeld(ControlChannel& channel) {
  for (; holding(); ++next_held_) channel.Release(held_[next_held_].slot);
  held_.clear();
  next_held_ = 0;
}

}  // namespace tokamak::transport
