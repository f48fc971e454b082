#include "lib/verbs/kernel/program/provider_ring.h"

#include <utility>

namespace tokamak::verbs::kernel {

std::unique_ptr<ProviderRing> ProviderRing::Make(RingMemory& memory, uint32_t least, uint32_t element_size) {
  uint32_t slots = 2;
  while (slots < least + 1) slots *= 2;
  uint32_t log2_size = 3;
  while ((uint32_t{1} << log2_size) < element_size) ++log2_size;
  std::unique_ptr<RingMemory::Block> block =
      memory.Allocate(sizeof(rxe_queue_buf) + (static_cast<size_t>(slots) << log2_size));
  if (block == nullptr) return nullptr;
  return std::unique_ptr<ProviderRing>(new ProviderRing(std::move(block), slots - 1, log2_size));
}

ProviderRing::ProviderRing(std::unique_ptr<RingMemory::Block> block, uint32_t mask, uint32_t log2_size)
    : block_(std::move(block)), mask_(mask), log2_size_(log2_size) {
  header().log2_elem_size = log2_size;
  header().index_mask = mask;
}

}  // namespace tokamak::verbs::kernel
