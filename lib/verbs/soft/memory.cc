#include "lib/verbs/soft/memory.h"

#include "glog/logging.h"

namespace tokamak::verbs::soft {

uint32_t KeyTable::Add(DomainId domain, uint8_t* address, uint64_t length, Access access) {
  uint32_t index = 0;
  if (entries_.size() <= kMaxRegions) {
    // Fresh indexes first while they are cheap: reuse waits until some have rested.
    constexpr size_t kResting = 64;
    if (free_.size() < kResting) {
      index = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
      entries_[index].key = index << kTagBits | static_cast<uint32_t>(random_.Below(kTagMask + 1));
    }
  }
  if (index == 0) {
    if (free_.empty()) return 0;
    index = free_.front();
    free_.pop_front();
  }
  Region& region = entries_[index];
  region = {address, length, domain, access, region.key, true};
  ++live_;
  return region.key;
}

void KeyTable::Remove(uint32_t key) {
  CHECK(Find(key) != nullptr);
  Region& region = entries_[key >> kTagBits];
  region = Region();
  region.key = (key & ~kTagMask) | ((key + tag_step_) & kTagMask);
  free_.push_back(key >> kTagBits);
  --live_;
}

}  // namespace tokamak::verbs::soft
