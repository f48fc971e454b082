#include "lib/transport/protocols/eager.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

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

absl::Status EagerPuller::Accept(const Message& message, CopyBudget& budget) {
  const Header& header = message.header;
  if (header.size != size_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of an object of ", header.size.total(), " bytes among those of ", size_.total()));
  }
  if (header.offset != copied_ || (started_ && message.body.empty())) {
    return absl::InvalidArgumentError(absl::StrCat("a chunk at ", header.offset, " where ", copied_, " comes next"));
  }
  started_ = true;
  if (message.body.empty()) return absl::OkStatus();
  CopyWithin(budget, loop_, memory_.data() + copied_, message.body.data(), message.body.size());
  copied_ += message.body.size();
  return absl::OkStatus();
}

}  // namespace tokamak::transport
