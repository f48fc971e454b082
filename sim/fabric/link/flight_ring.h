// FlightRing is a line of frames on their way, with the times at which they arrive. The times lie
// together: the next arrival is known without a look at the frame.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/base/time.h"
#include "sim/fabric/link/frame.h"

namespace tokamak::sim {

class FlightRing final {
 public:
  struct Flight {
    Frame* frame = nullptr;
    base::Time arrives;
  };

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  const Flight& front() const { return ring_[first_]; }

  void Push(Frame* frame, base::Time arrives) {
    if (count_ == ring_.size()) Grow();
    ring_[(first_ + count_++) & (ring_.size() - 1)] = {frame, arrives};
  }

  // The ring must not be empty.
  Frame* Pop() {
    Frame* frame = ring_[first_].frame;
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
    return frame;
  }

 private:
  static constexpr size_t kLeast = 4;  // a power of two, as all sizes

  void Grow() {
    std::vector<Flight> larger(ring_.empty() ? kLeast : 2 * ring_.size());
    for (size_t i = 0; i < count_; ++i) larger[i] = ring_[(first_ + i) & (ring_.size() - 1)];
    ring_.swap(larger);
    first_ = 0;
  }

  std::vector<Flight> ring_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace tokamak::sim
