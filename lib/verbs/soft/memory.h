// KeyTable says which memory a key opens, for whom and for what.
//
// It is asked for every packet that touches memory, so a look-up is an index and a comparison. A key is an index and a tag
// that changes each time the index is used again: a key that was revoked opens nothing, until its index was used 4096 times.
//
// Thread rule: under the NIC's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "lib/base/random.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// A protection domain, as regions and queue pairs remember it.
using DomainId = uint32_t;

class KeyTable final {
 public:
  static constexpr size_t kMaxRegions = (size_t{1} << 20) - 1;

  explicit KeyTable(base::Random random)
      : random_(random), tag_step_(1 | static_cast<uint32_t>(random_.Below(kTagMask))) {
    entries_.emplace_back();
  }

  // Returns the key, for local and remote use alike; 0 when kMaxRegions live.
  uint32_t Add(DomainId domain, uint8_t* address, uint64_t length, Access access);
  void Remove(uint32_t key);

  // The memory of an sge, or null when its key does not cover it. With `write` the region must be kLocalWrite.
  // An empty sge is always good.
  bool LocalAllows(DomainId domain, const Sge& sge, bool write) const {
    if (sge.length == 0) return true;
    const Region* region = Find(sge.lkey);
    if (region == nullptr || region->domain != domain) return false;
    if (write && (region->access & kLocalWrite) == 0) return false;
    return Covers(*region, reinterpret_cast<uint64_t>(sge.address), sge.length);
  }

  // True when the sge's key covers its memory, whether or not it may be written.
  bool LocalCovers(DomainId domain, const Sge& sge) const { return LocalAllows(domain, sge, false); }

  // Where a peer's access goes, or null when `key` does not allow it. `length` must not be 0: then no key is looked at.
  uint8_t* Remote(DomainId domain, uint32_t key, uint64_t address, uint64_t length, Access access) const {
    const Region* region = Find(key);
    if (region == nullptr || region->domain != domain) return nullptr;
    if ((region->access & access) != static_cast<uint32_t>(access)) return nullptr;
    return Covers(*region, address, length) ? reinterpret_cast<uint8_t*>(address) : nullptr;
  }

  size_t regions() const { return live_; }

 private:
  struct Region {
    uint8_t* address = nullptr;
    uint64_t length = 0;
    DomainId domain = 0;
    Access access = kLocalRead;
    uint32_t key = 0;  // with the tag of its current or next use
    bool live = false;
  };
  static constexpr uint32_t kTagBits = 12;
  static constexpr uint32_t kTagMask = (1u << kTagBits) - 1;

  const Region* Find(uint32_t key) const {
    const uint32_t index = key >> kTagBits;
    if (index >= entries_.size()) return nullptr;
    const Region& region = entries_[index];
    return region.live && region.key == key ? &region : nullptr;
  }

  // Neither sum nor difference can wrap: `length` is compared with what is left of the region.
  static bool Covers(const Region& region, uint64_t address, uint64_t length) {
    const uint64_t begin = reinterpret_cast<uint64_t>(region.address);
    if (address < begin) return false;
    const uint64_t offset = address - begin;
    return offset <= region.length && length <= region.length - offset;
  }

  base::Random random_;
  const uint32_t tag_step_;      // odd: an index goes through all tags before one comes again
  std::vector<Region> entries_;  // 0 is never used
  std::deque<uint32_t> free_;    // oldest first, so that an index rests before it is used again
  size_t live_ = 0;
};

}  // namespace tokamak::verbs::soft
