// What is filled and emptied again and again keeps its memory.
#pragma once

#include <cstddef>
#include <vector>

namespace tokamak::base {

// Empties `items`, keeping their memory for the next; that of a burst, more than `most`, is given
// back.
template <typename T>
void EmptyForReuse(std::vector<T>& items, size_t most = 1024) {
  if (items.capacity() > most) {
    std::vector<T>().swap(items);
  } else {
    items.clear();
  }
}

}  // namespace tokamak::base
