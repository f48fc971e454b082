// KeyTable says which memory a key opens, for whom and for what.
//
// A key is an index and a tag, which changes with each reuse of the index or bind of the window: a
// revoked key opens nothing until its index was used 4096 times. Bytes of a region are named by
// address, or from the base that it was registered with.
//
// A region's key opens it to the whole domain. A window's opens a part of a region to peers of one
// queue pair, from its bind until it is invalidated, or the window, the region or the queue pair is
// gone (10.6.7, type 2B). A window remembers the lives of region and queue pair, so nobody has to
// search for the windows of one that ends.
// Thread rule: the NIC's mutex, except NextKey.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <unordered_set>
#include <vector>

#include "absl/types/span.h"
#include "lib/verbs/soft/host_memory.h"
#include "lib/verbs/soft/state/secret_numbers.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

using DomainId = uint32_t;

// The life of a queue pair, from when it is made or reset until it is in Error. Numbers are never
// reused; 0: none.
using QueuePairLife = uint64_t;

// On whose behalf memory is asked for.
struct Asker {
  DomainId domain = 0;
  QueuePairLife queue_pair = 0;
};

// `life` distinguishes users of one index.
struct WindowId {
  uint32_t key = 0;
  uint64_t life = 0;
};

// A bind request (10.6.7.2.4).
struct WindowBinding {
  WindowId window;  // with its next key: the old one with another tag
  uint32_t region_key = 0;
  uint64_t address = 0;
  uint64_t length = 0;  // bytes, not 0
  Access access = kLocalRead;
  bool zero_based = false;  // true if peers count from 0, not `address`
};

struct RegionMemory {
  explicit RegionMemory(absl::Span<uint8_t> memory) : RegionMemory(memory, reinterpret_cast<uint64_t>(memory.data())) {}
  RegionMemory(absl::Span<uint8_t> memory, uint64_t first) : bytes(memory), base(first) {}

  absl::Span<uint8_t> bytes;
  uint64_t base;  // name of the first byte; base + size does not wrap
};

class KeyTable final {
 public:
  static constexpr size_t kMaxKeys = (size_t{1} << 20) - 1;  // regions and windows

  // `host_memory`, which may be null, outlives the table.
  explicit KeyTable(const SecretNumbers& numbers, const HostMemory* host_memory = nullptr)
      : host_memory_(host_memory), numbers_(numbers), tag_step_(1 | static_cast<uint32_t>(numbers_.Below(kTagMask))) {
    entries_.emplace_back();
  }

  // Returns a region's key, for local and remote use; 0 when kMaxKeys live.
  uint32_t Add(DomainId domain, const RegionMemory& memory, Access access);
  void Remove(uint32_t key);

  // Replaces everything of a region but its key, and unbinds its windows.
  void Change(uint32_t key, DomainId domain, const RegionMemory& memory, Access access);

  // Returns an unbound window, whose key opens nothing yet; the key is 0 when kMaxKeys live.
  WindowId AddWindow(DomainId domain);

  // Returns the key of the last bind, which may be older than `window`'s.
  uint32_t RemoveWindow(const WindowId& window);

  // Returns a window's key after its next bind. Any thread.
  uint32_t NextKey(uint32_t key) const { return (key & ~kTagMask) | ((key + tag_step_) & kTagMask); }

  // True if `next` differs only in the last 8 bits, which are the owner's (10.6.7.2.1).
  static bool MayFollow(uint32_t key, uint32_t next) { return (key & ~kOwnersBits) == (next & ~kOwnersBits); }

  // Begins a queue pair's life; windows bound in it may be bound in another once it has ended.
  QueuePairLife BeginLife() { return *living_.insert(++lives_).first; }
  void EndLife(QueuePairLife life) { living_.erase(life); }

  // Returns false, changing nothing, if the window is gone or bound; if window, region and queue
  // pair are not of one domain; or if the region does not cover the range, lacks kWindowBind, or
  // lacks kLocalWrite while the window allows writes.
  [[nodiscard]] bool Bind(const Asker& asker, const WindowBinding& binding);

  // True if `key` is of a window bound for `asker`, whose peer may invalidate it.
  bool IsWindowOf(const Asker& asker, uint32_t key) const;

  // Takes back a window's key. Returns false if `domain` has no such bound window.
  [[nodiscard]] bool Invalidate(DomainId domain, uint32_t key);

  // True if an sge's key covers its memory; with `write` the region must be kLocalWrite. An empty
  // sge is always good.
  bool LocalAllows(DomainId domain, const Sge& sge, bool write) const {
    if (sge.length == 0) return true;
    const Entry* region = Find(sge.lkey);
    if (region == nullptr || region->kind != Kind::kRegion || region->domain != domain) return false;
    if (write && (region->access & kLocalWrite) == 0) return false;
    return Covers(*region, reinterpret_cast<uint64_t>(sge.address), sge.length);
  }

  // The same, writable or not.
  bool LocalCovers(DomainId domain, const Sge& sge) const { return LocalAllows(domain, sge, false); }

  // Returns the memory of an sge that is allowed and not empty.
  uint8_t* MemoryOf(const Sge& sge) const {
    if (!any_base_) return sge.address;
    return MemoryAt(entries_[sge.lkey >> kTagBits], reinterpret_cast<uint64_t>(sge.address));
  }

  // Returns null if `key` does not allow the access. `length` must not be 0: an access without
  // bytes needs no key.
  uint8_t* Remote(const Asker& asker, uint32_t key, uint64_t address, uint64_t length, Access access) const {
    const Entry* entry = Find(key);
    if (entry == nullptr || entry->domain != asker.domain) return nullptr;
    if (entry->kind == Kind::kWindow && entry->queue_pair != asker.queue_pair) return nullptr;
    if ((entry->access & access) != static_cast<uint32_t>(access)) return nullptr;
    return Covers(*entry, address, length) ? MemoryAt(*entry, address) : nullptr;
  }

  // True if the host still has memory, not phantom, that a key allows; asked with each access.
  bool MayRead(const uint8_t* memory, size_t length) const {
    return host_memory_ == nullptr || length == 0 || host_memory_->MayRead(memory, length);
  }
  bool MayChange(uint8_t* memory, size_t length) const {
    return host_memory_ == nullptr || host_memory_->MayChange(memory, length);
  }
  bool Write(uint8_t* to, const void* from, size_t length) const {
    if (host_memory_ != nullptr) return host_memory_->Write(to, static_cast<const uint8_t*>(from), length);
    std::memcpy(to, from, length);
    return true;
  }

  // Returns the key of the region that `key` opens, itself or as a window; 0 when `key` opens
  // nothing.
  uint32_t RegionOf(uint32_t key) const;

  // True if `key` opens phantom memory.
  bool IsPhantom(uint32_t key) const {
    if (!any_phantom_) return false;
    const Entry* entry = Find(key);
    if (entry == nullptr) return false;
    const Entry& region = entry->kind == Kind::kRegion ? *entry : entries_[entry->region];
    return (region.access & kPhantom) != 0;
  }

  size_t regions() const { return regions_; }
  size_t windows() const { return windows_; }

 private:
  enum class Kind : uint8_t { kFree, kRegion, kWindow };
  struct Entry {
    Kind kind = Kind::kFree;
    bool open = false;  // true for a region or a bound window
    uint32_t key = 0;   // with the tag of its current or next use
    DomainId domain = 0;
    Access access = kLocalRead;
    uint8_t* memory = nullptr;
    uint64_t base = 0;  // name of the first byte
    uint64_t length = 0;
    uint64_t life = 0;  // of this use of the index, never reused; 0: none
    // Of windows, while bound.
    QueuePairLife queue_pair = 0;
    uint32_t region = 0;  // index
    uint64_t region_life = 0;
  };
  static constexpr uint32_t kOwnersBits = 0xff;
  static constexpr uint32_t kTagBits = 12;
  static constexpr uint32_t kTagMask = (1u << kTagBits) - 1;

  // Returns an open entry, or null.
  const Entry* Find(uint32_t key) const {
    const uint32_t index = key >> kTagBits;
    if (index >= entries_.size()) return nullptr;
    const Entry& entry = entries_[index];
    if (!entry.open || entry.key != key) return nullptr;
    if (entry.kind == Kind::kWindow && !HasRegion(entry)) return nullptr;
    return &entry;
  }
  bool IsBound(const Entry& window) const {
    return window.open && HasRegion(window) && living_.count(window.queue_pair) > 0;
  }
  bool HasRegion(const Entry& window) const { return entries_[window.region].life == window.region_life; }

  // Cannot wrap: `length` is compared with the rest of the region.
  static bool Covers(const Entry& entry, uint64_t address, uint64_t length) {
    if (address < entry.base) return false;
    const uint64_t offset = address - entry.base;
    return offset <= entry.length && length <= entry.length - offset;
  }
  static uint8_t* MemoryAt(const Entry& entry, uint64_t address) { return entry.memory + (address - entry.base); }
  void Fill(Entry* region, DomainId domain, const RegionMemory& memory, Access access);

  Entry* Window(const WindowId& window);
  Entry* Take();  // null when kMaxKeys live
  void Free(uint32_t key);

  const HostMemory* const host_memory_;
  SecretNumbers numbers_;
  const uint32_t tag_step_;  // odd: an index goes through all tags before one repeats
  uint64_t next_life_ = 1;
  QueuePairLife lives_ = 0;  // how many ever began
  std::unordered_set<QueuePairLife> living_;
  std::vector<Entry> entries_;  // [0] is never used
  std::deque<uint32_t> free_;   // oldest first: an index rests before reuse
  bool any_phantom_ = false;    // true if there ever was one
  bool any_base_ = false;       // true if a region ever had a base other than its address
  size_t regions_ = 0;
  size_t windows_ = 0;
};

}  // namespace tokamak::verbs::soft
