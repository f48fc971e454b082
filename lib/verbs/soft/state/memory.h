// KeyTable says which memory a key opens, for whom and for what.
//
// It is asked for every packet that touches memory, so a look-up is an index and a comparison. A
// key is an index and a tag that changes each time the index is used again, and each time a window
// is bound: a key that was revoked opens nothing, until its index was used 4096 times.
//
// Requests and sges name a byte of a region by its address, or by another number, where it was
// registered with a base of its own: then they count from there.
//
// A region's key opens it to the whole domain. A window's key opens a part of a region to peers of
// one queue pair, from its bind on until it is invalidated, or the window, the region or the queue
// pair is gone. (10.6.7, type 2B) Nobody looks for the windows of a region or of a queue pair that
// goes: a window remembers the one life of each that it was bound in.
//
// Thread rule: under the NIC's mutex, but for NextKey.
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

// A protection domain, as regions and queue pairs remember it.
using DomainId = uint32_t;

// A queue pair from when it was made, or last reset, on, until it is in Error. Never used again; 0
// is none.
using QueuePairLife = uint64_t;

// On whose behalf a peer asks for memory.
struct Asker {
  DomainId domain = 0;
  QueuePairLife queue_pair = 0;
};

// A window as its handle knows it. `life` tells it from others that had its index before.
struct WindowId {
  uint32_t key = 0;
  uint64_t life = 0;
};

// What a bind asks for. (10.6.7.2.4)
struct WindowBinding {
  WindowId window;          // with the key that it is to have: the one that it had, with another tag
  uint32_t region_key = 0;  // of the region below it
  uint64_t address = 0;
  uint64_t length = 0;  // bytes, not 0
  Access access = kLocalRead;
  bool zero_based = false;  // peers count from 0, and not from `address`
};

// What a region is made of. Its first byte is named `base`.
struct RegionMemory {
  explicit RegionMemory(absl::Span<uint8_t> memory) : RegionMemory(memory, reinterpret_cast<uint64_t>(memory.data())) {}
  RegionMemory(absl::Span<uint8_t> memory, uint64_t first) : bytes(memory), base(first) {}

  absl::Span<uint8_t> bytes;
  uint64_t base;  // and base + size does not wrap
};

class KeyTable final {
 public:
  static constexpr size_t kMaxKeys = (size_t{1} << 20) - 1;  // regions and windows

  // `host_memory` may be null; it outlives the table.
  explicit KeyTable(const SecretNumbers& numbers, const HostMemory* host_memory = nullptr)
      : host_memory_(host_memory), numbers_(numbers), tag_step_(1 | static_cast<uint32_t>(numbers_.Below(kTagMask))) {
    entries_.emplace_back();
  }

  // Returns a region's key, for local and remote use alike; 0 when kMaxKeys live.
  uint32_t Add(DomainId domain, const RegionMemory& memory, Access access);
  void Remove(uint32_t key);

  // The region keeps its key, and is another one below it: no window is bound in it any more.
  void Change(uint32_t key, DomainId domain, const RegionMemory& memory, Access access);

  // A window that is not bound: its key, which opens nothing yet, is 0 when kMaxKeys live.
  WindowId AddWindow(DomainId domain);

  // `window` is as its handle knows it; returns the key under which it was bound last, which may be
  // an older one.
  uint32_t RemoveWindow(const WindowId& window);

  // The key of a window after its next bind. Any thread.
  uint32_t NextKey(uint32_t key) const { return (key & ~kTagMask) | ((key + tag_step_) & kTagMask); }

  // Whether `next` may follow `key`, where its owner chooses: the last 8 bits are his. (10.6.7.2.1)
  static bool MayFollow(uint32_t key, uint32_t next) { return (key & ~kOwnersBits) == (next & ~kOwnersBits); }

  // A queue pair's life begins; once it has ended, windows that were bound in it are free to be
  // bound in another.
  QueuePairLife BeginLife() { return *living_.insert(++lives_).first; }
  void EndLife(QueuePairLife life) { living_.erase(life); }

  // Returns false, having changed nothing, when the window may not be bound like this: it is gone,
  // or bound; it, the region or the queue pair are of different domains; the region does not cover
  // the range, is not kWindowBind, or is to be written through the window and is not kLocalWrite.
  [[nodiscard]] bool Bind(const Asker& asker, const WindowBinding& binding);

  // True when `key` is that of a window that is bound for `asker`: what its peer may invalidate.
  bool IsWindowOf(const Asker& asker, uint32_t key) const;

  // Takes back the key of a window of `domain`. Returns false when there is no such window, or it
  // is not bound.
  [[nodiscard]] bool Invalidate(DomainId domain, uint32_t key);

  // Whether an sge's key covers its memory. With `write` the region must be kLocalWrite. An empty sge
  // is always good.
  bool LocalAllows(DomainId domain, const Sge& sge, bool write) const {
    if (sge.length == 0) return true;
    const Entry* region = Find(sge.lkey);
    if (region == nullptr || region->kind != Kind::kRegion || region->domain != domain) return false;
    if (write && (region->access & kLocalWrite) == 0) return false;
    return Covers(*region, reinterpret_cast<uint64_t>(sge.address), sge.length);
  }

  // True when the sge's key covers its memory, whether or not it may be written.
  bool LocalCovers(DomainId domain, const Sge& sge) const { return LocalAllows(domain, sge, false); }

  // Where the bytes of an sge lie that is allowed, and not empty.
  uint8_t* MemoryOf(const Sge& sge) const {
    if (!any_base_) return sge.address;
    return MemoryAt(entries_[sge.lkey >> kTagBits], reinterpret_cast<uint64_t>(sge.address));
  }

  // Where a peer's access goes, or null when `key` does not allow it. `length` must not be 0: then
  // no key is looked at.
  uint8_t* Remote(const Asker& asker, uint32_t key, uint64_t address, uint64_t length, Access access) const {
    const Entry* entry = Find(key);
    if (entry == nullptr || entry->domain != asker.domain) return nullptr;
    if (entry->kind == Kind::kWindow && entry->queue_pair != asker.queue_pair) return nullptr;
    if ((entry->access & access) != static_cast<uint32_t>(access)) return nullptr;
    return Covers(*entry, address, length) ? MemoryAt(*entry, address) : nullptr;
  }

  // Whether the host still has memory that a key allows, which is not phantom: before each access,
  // or as a part of it.
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

  // The key of the region that is opened by `key`, its own or a window's; 0 when it opens nothing.
  uint32_t RegionOf(uint32_t key) const;

  // True when `key` opens a region, or a window of one, that was registered as kPhantom.
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
    bool open = false;  // a region, or a bound window
    uint32_t key = 0;   // with the tag of its current or next use
    DomainId domain = 0;
    Access access = kLocalRead;
    uint8_t* memory = nullptr;
    uint64_t base = 0;  // the name of its first byte
    uint64_t length = 0;
    uint64_t life = 0;  // of this use of the index; never used again, 0 is none
    // Windows, while bound.
    QueuePairLife queue_pair = 0;
    uint32_t region = 0;  // index
    uint64_t region_life = 0;
  };
  static constexpr uint32_t kOwnersBits = 0xff;
  static constexpr uint32_t kTagBits = 12;
  static constexpr uint32_t kTagMask = (1u << kTagBits) - 1;

  // An open entry.
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

  // Neither sum nor difference can wrap: `length` is compared with what is left of the region.
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
  const uint32_t tag_step_;  // odd: an index goes through all tags before one comes again
  uint64_t next_life_ = 1;
  QueuePairLife lives_ = 0;  // that ever began
  std::unordered_set<QueuePairLife> living_;
  std::vector<Entry> entries_;  // 0 is never used
  std::deque<uint32_t> free_;   // oldest first, so that an index rests before it is used again
  bool any_phantom_ = false;    // ever
  bool any_base_ = false;       // the same: a region whose bytes are named by other than their addresses
  size_t regions_ = 0;
  size_t windows_ = 0;
};

}  // namespace tokamak::verbs::soft
