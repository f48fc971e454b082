// Fifo is a queue that allocates only while it grows beyond any length it has had.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "lib/base/check.h"

namespace tokamak::transport {

template <typename T>
class Fifo final {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  void Push(T value) {
    if (size_ == ring_.size()) Grow();
    ring_[(head_ + size_) & (ring_.size() - 1)] = std::move(value);
    ++size_;
  }

  T& front() {
    DCHECK(!empty());
    return ring_[head_];
  }

  T Pop() {
    CHECK(!empty());
    T value = std::move(ring_[head_]);
    ring_[head_] = T();
    head_ = (head_ + 1) & (ring_.size() - 1);
    --size_;
    return value;
  }

  void Clear() {
    while (!empty()) Pop();
  }

 private:
  void Grow() {
    std::vector<T> larger(ring_.empty() ? 8 : 2 * ring_.size());
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(ring_[(head_ + i) & (ring_.size() - 1)]);
    ring_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> ring_;  // size: a power of two
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace tokamak::transport
