// CopyBudget is the number of bytes that one task may still copy (base::kMaxCopyPerTask).
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/base/event_loop.h"

namespace tokamak::transport {

struct CopyBudget {
  size_t left = base::kMaxCopyPerTask;
  bool Covers(size_t size) const { return size <= left; }
};

inline void CopyWithin(CopyBudget& budget, base::EventLoop& loop, uint8_t* to, const uint8_t* from, size_t size) {
  base::Copy(loop, to, from, size);
  budget.left -= size < budget.left ? size : budget.left;
}

}  // namespace tokamak::transport
