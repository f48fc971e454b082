#include "lib/verbs/soft/outbox.h"

#include <algorithm>

#include "glog/logging.h"

namespace tokamak::verbs::soft {

size_t Outbox::Flush(Port& port) {
  const size_t taken = port.Send(waiting());
  CHECK_LE(taken, size());
  begin_ += taken;
  if (empty()) begin_ = end_ = 0;
  return taken;
}

bool Outbox::Holds(uint32_t owner) const {
  return std::find(owners_.begin() + static_cast<ptrdiff_t>(begin_), owners_.begin() + static_cast<ptrdiff_t>(end_),
                   owner) != owners_.begin() + static_cast<ptrdiff_t>(end_);
}

size_t Outbox::DropOwner(uint32_t owner) {
  return Drop([&](size_t i) { return owners_[i] == owner; });
}

size_t Outbox::DropMemory(const uint8_t* address, uint64_t length) {
  return Drop([&](size_t i) {
    const Packet& packet = packets_[i];
    for (uint32_t s = 0; s < packet.slices; ++s) {
      const PayloadSlice& slice = packet.payload[s];
      if (slice.data < address + length && address < slice.data + slice.length) return true;
    }
    return false;
  });
}

template <typename Condemned>
size_t Outbox::Drop(Condemned condemned) {
  size_t kept = begin_;
  for (size_t i = begin_; i < end_; ++i) {
    if (condemned(i)) continue;
    if (kept != i) {
      packets_[kept] = packets_[i];
      owners_[kept] = owners_[i];
    }
    ++kept;
  }
  const size_t dropped = end_ - kept;
  end_ = kept;
  if (empty()) begin_ = end_ = 0;
  return dropped;
}

}  // namespace tokamak::verbs::soft
