// HeapTrimmer gives back to the system what the heap has free. tcmalloc keeps it for the next time,
// and a daemon would stay as large as it was in its busiest moment: while its directory was away
// and it noted what it had to say, for example.
//
// What is free is given back in steps, for all threads that want pages of the heap wait meanwhile;
// and not all of it, since some is needed again at once. What lies in one piece goes as a whole.
//
// Where the program has another allocator (a sanitizer's) nothing is done.
// Thread rule: its loop's.
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

  // Bytes that the heap has from the system and that nobody uses; 0 with another allocator.
  static size_t Free();

 private:
  void Look();

  base::EventLoop& loop_;
  base::Timer next_;
};

}  // namespace tokamak::daemon
