// CopyBudget is the number of bytes that one task may still copy (base::kMaxCopyPerTask), and how
// many calls of peers it has handed out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/base/event_loop.h"

namespace tokamak::transport {

struct CopyBudget {
  size_t left = base::kMaxCopyPerTask;
  uint32_t calls = 0;
  bool Covers(size_t size) const { return size <= left; }
  void Charge(size_t size) { left -= std::min(size, left); }
};

inline void CopyWithin(CopyBudget& budget, base::EventLoop& loop, uint8_t* to, const uint8_t* from, size_t size) {
  base::Copy(loop, to, from, size);
  budget.Charge(size);
}

}  // namespace tokamak::transport
