// KeyTable says which memory a key opens, for whom and for what.
//
// Every packet that touches memory needs a look-up: an index and a comparison. A key is an index
// and a tag, which changes each time the index is used again or a window is bound: a revoked key
// opens nothing until its index was used 4096 times.
//
// Requests and sges name a region's byte by its address, or from its base on if it was registered
// with one.
//
// A region's key opens it to the whole domain. A window's key opens a part of a region to peers of
// one queue pair, from its bind until it is invalidated, or the window, the region or the queue
// pair is gone. (10.6.7, type 2B) A window remembers the life of both, so nobody searches for the
// windows of one that goes.
//
// Thread rule: under the NIC's mutex, except NextKey.
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

// A queue pair from its making, or last reset, until it is in Error. Never used again; 0 is none.
using QueuePairLife = uint64_t;

// On whose behalf a peer asks for memory.
struct Asker {
  DomainId domain = 0;
  QueuePairLife queue_pair = 0;
};

// A window as its handle knows it. `life` distinguishes users of one index.
struct WindowId {
  uint32_t key = 0;
  uint64_t life = 0;
};

// The request of a bind. (10.6.7.2.4)
struct WindowBinding {
  WindowId window;  // with its next key: the old one with another tag
  uint32_t region_key = 0;
  uint64_t address = 0;
  uint64_t length = 0;  // bytes, not 0
  Access access = kLocalRead;
  bool zero_based = false;  // true if peers count from 0, and not from `address`
};

// The first byte is named `base`.
struct RegionMemory {
  explicit RegionMemory(absl::Span<uint8_t> memory) : RegionMemory(memory, reinterpret_cast<uint64_t>(memory.data())) {}
  RegionMemory(absl::Span<uint8_t> memory, uint64_t first) : bytes(memory), base(first) {}

  absl::Span<uint8_t> bytes;
  uint64_t base;  // base + size does not wrap
};

class KeyTable final {
 public:
  static constexpr size_t kMaxKeys = (size_t{1} << 20) - 1;  // regions and windows

  // `host_memory` may be null; it outlives the table.
  explicit KeyTable(const SecretNumbers& numbers, const HostMemory* host_memory = nullptr)
      : host_memory_(host_memory), numbers_(numbers), tag_step_(1 | static_cast<uint32_t>(numbers_.Below(kTagMask))) {
    entries_.emplace_back();
  }

  // Returns a region's key, for local and remote use; 0 when kMaxKeys live.
  uint32_t Add(DomainId domain, const RegionMemory& memory, Access access);
  void Remove(uint32_t key);

  // Replaces a region; its key stays, and no window is bound in it any more.
  void Change(uint32_t key, DomainId domain, const RegionMemory& memory, Access access);

  // Returns a window that is not bound: its key, which opens nothing yet, is 0 when kMaxKeys live.
  WindowId AddWindow(DomainId domain);

  // Returns the key of the last bind, which may be older than `window`'s.
  uint32_t RemoveWindow(const WindowId& window);

  // Returns a window's key after its next bind. Any thread.
  uint32_t NextKey(uint32_t key) const { return (key & ~kTagMask) | ((key + tag_step_) & kTagMask); }

  // True if an owner may choose `next` after `key`: the last 8 bits are the owner's. (10.6.7.2.1)
  static bool MayFollow(uint32_t key, uint32_t next) { return (key & ~kOwnersBits) == (next & ~kOwnersBits); }

  // Begins a queue pair's life; windows bound in it may be bound in another once it has ended.
  QueuePairLife BeginLife() { return *living_.insert(++lives_).first; }
  void EndLife(QueuePairLife life) { living_.erase(life); }

  // Returns false, having changed nothing, when the window may not be bound like this: it is gone,
  // or bound; it, the region or the queue pair are of different domains; the region does not cover
  // the range, is not kWindowBind, or is to be written through the window and is not kLocalWrite.
  [[nodiscard]] bool Bind(const Asker& asker, const WindowBinding& binding);

  // True if `key` is of a window bound for `asker`, which its peer may invalidate.
  bool IsWindowOf(const Asker& asker, uint32_t key) const;

  // Takes back a window's key. Returns false when `domain` has no such window, or it is not bound.
  [[nodiscard]] bool Invalidate(DomainId domain, uint32_t key);

  // True if an sge's key covers its memory. With `write` the region must be kLocalWrite. An empty
  // sge is always good.
  bool LocalAllows(DomainId domain, const Sge& sge, bool write) const {
    if (sge.length == 0) return true;
    const Entry* region = Find(sge.lkey);
    if (region == nullptr || region->kind != Kind::kRegion || region->domain != domain) return false;
    if (write && (region->access & kLocalWrite) == 0) return false;
    return Covers(*region, reinterpret_cast<uint64_t>(sge.address), sge.length);
  }

  // Returns the same, writable or not.
  bool LocalCovers(DomainId domain, const Sge& sge) const { return LocalAllows(domain, sge, false); }

  // Returns the memory of an sge that is allowed, and not empty.
  uint8_t* MemoryOf(const Sge& sge) const {
    if (!any_base_) return sge.address;
    return MemoryAt(entries_[sge.lkey >> kTagBits], reinterpret_cast<uint64_t>(sge.address));
  }

  // Returns null when `key` does not allow the access. `length` must not be 0: then no key is
  // looked at.
  uint8_t* Remote(const Asker& asker, uint32_t key, uint64_t address, uint64_t length, Access access) const {
    const Entry* entry = Find(key);
    if (entry == nullptr || entry->domain != asker.domain) return nullptr;
    if (entry->kind == Kind::kWindow && entry->queue_pair != asker.queue_pair) return nullptr;
    if ((entry->access & access) != static_cast<uint32_t>(access)) return nullptr;
    return Covers(*entry, address, length) ? MemoryAt(*entry, address) : nullptr;
  }

  // True if the host still has memory, not phantom, that a key allows. Asked before each access, or
  // (Write) as a part of it.
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

  // Returns the region's key, of a region or of a window in it; 0 when `key` opens nothing.
  uint32_t RegionOf(uint32_t key) const;

  // True if `key` opens a phantom region, or a window of one.
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
    uint64_t base = 0;  // the name of its first byte
    uint64_t length = 0;
    uint64_t life = 0;  // of this use of the index, never used again; 0 is none
    // Windows, while bound.
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

  // No wrap: `length` is compared with the rest of the region.
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
  QueuePairLife lives_ = 0;  // how many ever began
  std::unordered_set<QueuePairLife> living_;
  std::vector<Entry> entries_;  // 0 is never used
  std::deque<uint32_t> free_;   // oldest first, so that an index rests before reuse
  bool any_phantom_ = false;    // true if there ever was one
  bool any_base_ = false;       // true if bytes of a region were ever named by other than their addresses
  size_t regions_ = 0;
  size_t windows_ = 0;
};

}  // namespace tokamak::verbs::soft
