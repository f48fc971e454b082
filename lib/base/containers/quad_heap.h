// QuadHeap is a heap whose nodes have four children: half as deep as a binary one, with siblings
// adjacent in memory.
//
// Only the first item can be removed or exchanged (else: indexed_heap.h). It allocates only to grow
// beyond any former size. Items are copied: keep them small. `Item` decides which goes first:
//
//   bool Before(const Item& other) const;  // total: equal runs give equal results
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tokamak::base {

template <typename Item>
class QuadHeap final {
 public:
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }

  // The heap must not be empty.
  const Item& front() const { return items_.front(); }

  void Push(const Item& item) {
    items_.push_back(item);
    SiftUp(items_.size() - 1, 0, item);
  }

  // The heap must not be empty.
  void PopFront() {
    const Item last = items_.back();
    items_.pop_back();
    if (!items_.empty()) Place(0, last);
  }

  // Does PopFront and Push at the cost of one.
  void ReplaceFront(const Item& item) { Place(0, item); }

  template <typename Condemned>
  void RemoveIf(Condemned condemned) {
    items_.erase(std::remove_if(items_.begin(), items_.end(), condemned), items_.end());
    if (items_.size() < 2) return;
    for (size_t i = (items_.size() - 2) / kChildren + 1; i-- > 0;) Place(i, Item(items_[i]));
  }

  void Clear() { items_.clear(); }

 private:
  static constexpr size_t kChildren = 4;

  // Puts the item below `top`, whose own item is overwritten. It goes to the bottom first and then
  // up again, since most belong near the bottom.
  void Place(const size_t top, const Item item) {
    const size_t size = items_.size();
    size_t position = top;
    for (;;) {
      const size_t first = kChildren * position + 1;
      if (first + kChildren > size) break;
      size_t least = items_[first + 1].Before(items_[first]) ? first + 1 : first;
      const size_t other = items_[first + 3].Before(items_[first + 2]) ? first + 3 : first + 2;
      if (items_[other].Before(items_[least])) least = other;
      items_[position] = items_[least];
      position = least;
    }
    // The last node may have fewer children.
    const size_t first = kChildren * position + 1;
    if (first < size) {
      size_t least = first;
      for (size_t child = first + 1; child < size; ++child) {
        if (items_[child].Before(items_[least])) least = child;
      }
      items_[position] = items_[least];
      position = least;
    }
    SiftUp(position, top, item);
  }

  void SiftUp(size_t position, const size_t top, const Item& item) {
    while (position > top) {
      const size_t parent = (position - 1) / kChildren;
      if (!item.Before(items_[parent])) break;
      items_[position] = items_[parent];
      position = parent;
    }
    items_[position] = item;
  }

  std::vector<Item> items_;
};

}  // namespace tokamak::base
