#include "tests/support/allocations.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "lib/base/check.h"

namespace {

std::atomic<int64_t> g_allocations{0};
std::atomic<int64_t> g_bytes{0};

void* Counted(void* memory, size_t size) {
  if (memory == nullptr) std::abort();
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  g_bytes.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  return memory;
}

}  // namespace

// All others come down to these two, but a sanitizer has some of its own.
void* operator new(size_t size) { return Counted(std::malloc(size == 0 ? 1 : size), size); }
void* operator new(size_t size, std::align_val_t alignment) {
  const auto step = static_cast<size_t>(alignment);
  return Counted(std::aligned_alloc(step, (size + step - 1) / step * step), size);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return operator new(size); }
void* operator new[](size_t size) { return operator new(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace tokamak::support {

int64_t Allocations() {
  const int64_t count = g_allocations.load(std::memory_order_relaxed);
  CHECK_GT(count, 0) << "another operator new is used";
  return count;
}

int64_t AllocatedBytes() { return g_bytes.load(std::memory_order_relaxed); }

int64_t AllocationsOf(std::initializer_list<const base::EventLoop*> loops, sim::Scheduler& scheduler,
                      const std::function<bool()>& done) {
  int64_t sum = 0;
  while (!done()) {
    const bool counts = std::find(loops.begin(), loops.end(), scheduler.next()) != loops.end();
    const int64_t before = Allocations();
    if (!scheduler.Step()) break;
    if (counts) sum += Allocations() - before;
  }
  return sum;
}

}  // namespace tokamak::support
