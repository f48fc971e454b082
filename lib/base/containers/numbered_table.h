// NumberedTable holds activities under way (transfers, calls): found by number, visited in the
// order in which they began. Memory is reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/base/check.h"
#include "lib/base/containers/intrusive_list.h"

namespace tokamak::base {

// T has a member `Link<T> table_link`.
template <typename T>
class NumberedTable final {
 public:
  NumberedTable() = default;
  NumberedTable(const NumberedTable&) = delete;
  NumberedTable& operator=(const NumberedTable&) = delete;
  ~NumberedTable() {
    while (!all_.empty()) Release(all_.first());
  }

  // The item has no number yet.
  template <typename... Arguments>
  T* Claim(Arguments&&... arguments) {
    if (free_.empty()) {
      pool_.push_back(std::make_unique<Place>());
      free_.reserve(pool_.size());
      free_.push_back(pool_.back().get());
    }
    Place* place = free_.back();
    free_.pop_back();
    T* item = new (place->bytes) T(std::forward<Arguments>(arguments)...);
    all_.PushBack(item);
    return item;
  }

  void Release(T* item) {
    all_.Remove(item);
    item->~T();
    free_.push_back(reinterpret_cast<Place*>(item));
  }

  void Bind(uint64_t number, T* item) { CHECK(by_number_.emplace(number, item).second); }
  void Unbind(uint64_t number) { by_number_.erase(number); }

  // Returns null if no item has this number.
  T* Find(uint64_t number) const {
    auto it = by_number_.find(number);
    return it == by_number_.end() ? nullptr : it->second;
  }

  bool empty() const { return all_.empty(); }
  size_t size() const { return all_.size(); }
  T* first() const { return all_.first(); }
  static T* Next(const T* item) { return IntrusiveList<T, &T::table_link>::Next(item); }

 private:
  struct Place {
    alignas(T) unsigned char bytes[sizeof(T)];
  };

  std::vector<std::unique_ptr<Place>> pool_;
  std::vector<Place*> free_;
  IntrusiveList<T, &T::table_link> all_;
  absl::flat_hash_map<uint64_t, T*> by_number_;  // never iterated
};

}  // namespace tokamak::base
