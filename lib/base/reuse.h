// Vectors that are filled and emptied again and again keep their memory.
#pragma once

#include <cstddef>
#include <vector>

namespace tokamak::base {

// Empties `items`, keeping memory for up to `most`; more, that of a burst, is freed.
template <typename T>
void EmptyForReuse(std::vector<T>& items, size_t most = 1024) {
  if (items.capacity() > most) {
    std::vector<T>().swap(items);
  } else {
    items.clear();
  }
}

}  // namespace tokamak::base
