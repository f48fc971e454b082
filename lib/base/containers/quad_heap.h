// QuadHeap is a heap whose nodes have four children: half as deep as a binary one, with siblings
// adjacent in memory.
//
// Only the first item can be removed, or exchanged for another in one step; IndexedHeap
// (indexed_heap.h) moves any item. It allocates only while it grows beyond any size it has had.
// Items are copied around, so they should be small. `Item` decides which goes first:
//
//   bool Before(const Item& other) const;  // a total order, so that equal runs give equal results
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

  // As PopFront and Push, at the cost of one of them.
  void ReplaceFront(const Item& item) { Place(0, item); }

  // Removes all items of which `condemned` is true.
  template <typename Condemned>
  void RemoveIf(Condemned condemned) {
    items_.erase(std::remove_if(items_.begin(), items_.end(), condemned), items_.end());
    if (items_.size() < 2) return;
    for (size_t i = (items_.size() - 2) / kChildren + 1; i-- > 0;) Place(i, Item(items_[i]));
  }

  void Clear() { items_.clear(); }

 private:
  static constexpr size_t kChildren = 4;

  // Puts the item into its place below `top`, whose own item is overwritten. It goes to the bottom
  // first and then up again: most items from outside, or from the end, belong there.
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
