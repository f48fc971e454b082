#include "lib/verbs/soft/state/memory.h"

#include "lib/base/check.h"

namespace tokamak::verbs::soft {

uint32_t KeyTable::Add(DomainId domain, const RegionMemory& memory, Access access) {
  Entry* region = Take();
  if (region == nullptr) return 0;
  region->kind = Kind::kRegion;
  region->open = true;
  Fill(region, domain, memory, access);
  ++regions_;
  return region->key;
}

void KeyTable::Fill(Entry* region, DomainId domain, const RegionMemory& memory, Access access) {
  region->domain = domain;
  region->access = access;
  region->memory = memory.bytes.data();
  region->base = memory.base;
  region->length = memory.bytes.size();
  any_phantom_ = any_phantom_ || (access & kPhantom) != 0;
  any_base_ = any_base_ || memory.base != reinterpret_cast<uint64_t>(memory.bytes.data());
}

void KeyTable::Remove(uint32_t key) {
  const Entry* region = Find(key);
  CHECK(region != nullptr && region->kind == Kind::kRegion);
  Free(key);
  --regions_;
}

void KeyTable::Change(uint32_t key, DomainId domain, const RegionMemory& memory, Access access) {
  CHECK(Find(key) != nullptr);
  Entry& region = entries_[key >> kTagBits];
  CHECK(region.kind == Kind::kRegion);
  Fill(&region, domain, memory, access);
  region.life = next_life_++;
}

WindowId KeyTable::AddWindow(DomainId domain) {
  Entry* window = Take();
  if (window == nullptr) return {};
  window->kind = Kind::kWindow;
  window->domain = domain;
  ++windows_;
  return {window->key, window->life};
}

uint32_t KeyTable::RemoveWindow(const WindowId& window) {
  const Entry* entry = Window(window);
  CHECK(entry != nullptr);
  const uint32_t bound = entry->key;
  Free(window.key);
  --windows_;
  return bound;
}

bool KeyTable::Bind(const Asker& asker, const WindowBinding& binding) {
  Entry* window = Window(binding.window);
  if (window == nullptr || window->domain != asker.domain) return false;
  if (IsBound(*window)) return false;
  const Entry* region = Find(binding.region_key);
  if (region == nullptr || region->kind != Kind::kRegion || region->domain != asker.domain) return false;
  if ((region->access & kWindowBind) == 0) return false;
  if ((binding.access & (kRemoteWrite | kRemoteAtomic)) != 0 && (region->access & kLocalWrite) == 0) return false;
  if (binding.length == 0 || !Covers(*region, binding.address, binding.length)) return false;
  window->open = true;
  window->key = binding.window.key;
  window->access = binding.access;
  window->memory = MemoryAt(*region, binding.address);
  window->base = binding.zero_based ? 0 : binding.address;
  window->length = binding.length;
  window->queue_pair = asker.queue_pair;
  window->region = binding.region_key >> kTagBits;
  window->region_life = region->life;
  return true;
}

bool KeyTable::IsWindowOf(const Asker& asker, uint32_t key) const {
  const Entry* entry = Find(key);
  return entry != nullptr && entry->kind == Kind::kWindow && entry->domain == asker.domain &&
         entry->queue_pair == asker.queue_pair;
}

bool KeyTable::Invalidate(DomainId domain, uint32_t key) {
  const Entry* entry = Find(key);
  if (entry == nullptr || entry->kind != Kind::kWindow || entry->domain != domain) return false;
  entries_[key >> kTagBits].open = false;
  return true;
}

uint32_t KeyTable::RegionOf(uint32_t key) const {
  const Entry* entry = Find(key);
  if (entry == nullptr) return 0;
  return entry->kind == Kind::kRegion ? key : entries_[entry->region].key;
}

KeyTable::Entry* KeyTable::Window(const WindowId& window) {
  const uint32_t index = window.key >> kTagBits;
  if (index >= entries_.size()) return nullptr;
  Entry& entry = entries_[index];
  return entry.kind == Kind::kWindow && entry.life == window.life ? &entry : nullptr;
}

KeyTable::Entry* KeyTable::Take() {
  uint32_t index = 0;
  if (entries_.size() <= kMaxKeys) {
    // Fresh indexes first: reuse waits until some have rested.
    constexpr size_t kResting = 64;
    if (free_.size() < kResting) {
      index = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
      entries_[index].key = index << kTagBits | static_cast<uint32_t>(numbers_.Below(kTagMask + 1));
    }
  }
  if (index == 0) {
    if (free_.empty()) return nullptr;
    index = free_.front();
    free_.pop_front();
  }
  entries_[index].life = next_life_++;
  return &entries_[index];
}

// `key` is the last that the index had.
void KeyTable::Free(uint32_t key) {
  Entry& entry = entries_[key >> kTagBits];
  entry = Entry();
  entry.key = NextKey(key);
  free_.push_back(key >> kTagBits);
}

}  // namespace tokamak::verbs::soft
