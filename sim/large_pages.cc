#include "sim/large_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace tokamak::sim {
namespace {

constexpr uintptr_t kPage = 2 << 20;

// Address space that malloc takes at once; used pages alone cost memory. Further allocations have
// small pages.
constexpr int kHeap = 512 << 20;

}  // namespace

void PreferLargePages() {
  mallopt(M_TOP_PAD, kHeap);
  mallopt(M_TRIM_THRESHOLD, 2 * kHeap);  // never given back
  mallopt(M_MMAP_THRESHOLD, kHeap / 16);
  const auto begin = reinterpret_cast<uintptr_t>(sbrk(0));
  void* const some = malloc(kPage);
  if (some == nullptr) return;
  *static_cast<volatile char*>(some) = 0;  // keeps the compiler from dropping the call
  free(some);
  mallopt(M_TOP_PAD, 0);
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0));
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  if (end > first) (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace tokamak::sim
