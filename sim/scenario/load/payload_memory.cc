#include "sim/scenario/load/payload_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "lib/base/check.h"

namespace tokamak::sim {

PayloadMemory::PayloadMemory(uint32_t bytes, bool phantom) : bytes_(bytes), phantom_(phantom) {
  const int protection = phantom ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* memory = mmap(nullptr, 2 * bytes_, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  PCHECK(memory != MAP_FAILED) << "mmap of " << 2 * bytes_ << " bytes";
  base_ = static_cast<uint8_t*>(memory);
  if (phantom) return;
  for (size_t i = 0; i < bytes_; ++i) base_[i] = static_cast<uint8_t>(1 + i * 7 + (i >> 9));
}

PayloadMemory::~PayloadMemory() { munmap(base_, 2 * bytes_); }

void PayloadMemory::Expect(uint32_t bytes) { expected_ = std::max(expected_, bytes); }

bool PayloadMemory::Right() const { return phantom_ || std::equal(base_, base_ + expected_, base_ + bytes_); }

}  // namespace tokamak::sim
