// IndexedHeap is a binary heap whose items know their positions: any can be moved or removed in
// O(log n).
//
// It allocates only to grow beyond any former size. `Order` decides which item goes first and
// stores the position of each:
//
//   bool Before(const Item& a, const Item& b) const;      // total: equal runs give equal results
//   void Place(const Item& item, size_t position) const;  // kNowhere: not in the heap
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tokamak::base {

template <typename Item, typename Order>
class IndexedHeap final {
 public:
  static constexpr size_t kNowhere = SIZE_MAX;

  explicit IndexedHeap(Order order = Order()) : order_(std::move(order)) {}
  IndexedHeap(const IndexedHeap&) = delete;
  IndexedHeap& operator=(const IndexedHeap&) = delete;

  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }

  // The heap must not be empty. back() is the cheapest to remove.
  const Item& front() const { return items_.front(); }
  const Item& back() const { return items_.back(); }
  const Item& operator[](size_t position) const { return items_[position]; }

  void Push(const Item& item) {
    items_.push_back(item);
    SiftUp(items_.size() - 1, item);
  }

  // Puts `item` at `position`, or restores the order after its key has changed.
  void Update(size_t position, const Item& item) {
    if (position > 0 && order_.Before(item, items_[(position - 1) / 2])) {
      SiftUp(position, item);
    } else {
      SiftDown(position, item);
    }
  }

  void Remove(size_t position) {
    order_.Place(items_[position], kNowhere);
    const Item last = items_.back();
    items_.pop_back();
    if (position != items_.size()) Update(position, last);
  }

 private:
  void Place(size_t position, const Item& item) {
    items_[position] = item;
    order_.Place(item, position);
  }

  void SiftUp(size_t position, const Item item) {
    while (position > 0) {
      const size_t parent = (position - 1) / 2;
      if (!order_.Before(item, items_[parent])) break;
      Place(position, items_[parent]);
      position = parent;
    }
    Place(position, item);
  }

  void SiftDown(size_t position, const Item item) {
    for (;;) {
      size_t child = 2 * position + 1;
      if (child >= items_.size()) break;
      if (child + 1 < items_.size() && order_.Before(items_[child + 1], items_[child])) ++child;
      if (!order_.Before(items_[child], item)) break;
      Place(position, items_[child]);
      position = child;
    }
    Place(position, item);
  }

  const Order order_;
  std::vector<Item> items_;
};

}  // namespace tokamak::base
