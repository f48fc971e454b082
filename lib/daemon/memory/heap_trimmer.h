// HeapTrimmer gives free heap memory back to the system. tcmalloc keeps it, and a daemon would stay
// as large as in its busiest moment.
//
// In steps, as all threads in need of pages wait meanwhile; a free span goes as a whole. No-op with
// another allocator (a sanitizer's). Thread rule: its loop's.
#pragma once

#include <cstddef>

#include "lib/base/event_loop.h"

namespace tokamak::daemon {

class HeapTrimmer final {
 public:
  static constexpr size_t kKept = size_t{16} << 20;  // bytes that may stay free
  static constexpr size_t kStep = size_t{1} << 20;   // bytes in one task, or some more
  static constexpr base::Duration kBetweenSteps = base::Milliseconds(50);
  static constexpr base::Duration kBetweenLooks = base::Seconds(5);

  // `loop` must outlive it.
  explicit HeapTrimmer(base::EventLoop& loop);

  // Returns the unused bytes held; 0 with another allocator.
  static size_t Free();

 private:
  void Look();

  base::EventLoop& loop_;
  base::Timer next_;
};

}  // namespace tokamak::daemon
