// ProviderRing is a queue in memory shared with a program's provider library (librxe): work
// requests one way, completions the other (rxe_queue_buf in rdma/rdma_user_rxe.h).
//
// The program can write all of it at any time: sizes are kept here, each index read is masked, and
// an element is copied before it is looked at.
//
//   consumer_index            producer_index
//        |  filled               |  free            one element always stays free
//
// Thread rule: the program uses one end in its threads; the other is ours, under one lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/verbs/kernel/program/program_order.h"
#include "lib/verbs/kernel/program/ring_memory.h"
#include "lib/verbs/kernel/program/rxe_abi.h"

namespace tokamak::verbs::kernel {

class ProviderRing final {
 public:
  // Makes a ring of at least `least` elements, see capacity(), of `element_size` bytes. Null
  // without memory.
  static std::unique_ptr<ProviderRing> Make(RingMemory& memory, uint32_t least, uint32_t element_size);

  uint32_t capacity() const { return mask_; }
  // Where the program maps it.
  const mminfo& place() const { return block_->place(); }

  uint32_t Next(uint32_t index) const { return (index + 1) & mask_; }
  void* at(uint32_t index) const { return header().data + (static_cast<size_t>(index & mask_) << log2_size_); }
  uint32_t element_size() const { return uint32_t{1} << log2_size_; }

  // The program's indices, masked.
  uint32_t producer() const { return Load(header().producer_index); }
  uint32_t consumer() const { return Load(header().consumer_index); }

  // Elements between them, by the program's index.
  uint32_t filled() const { return (producer() - consumer()) & mask_; }

  // Our indices.
  void SetProducer(uint32_t index) { Store(header().producer_index, index); }
  void SetConsumer(uint32_t index) { Store(header().consumer_index, index); }

 private:
  ProviderRing(std::unique_ptr<RingMemory::Block> block, uint32_t mask, uint32_t log2_size);

  rxe_queue_buf& header() const { return *static_cast<rxe_queue_buf*>(block_->address()); }
  uint32_t Load(const uint32_t& index) const {
    const uint32_t loaded = __atomic_load_n(&index, __ATOMIC_ACQUIRE);
    ProgramOrder::DeviceLoads();
    return loaded & mask_;
  }
  static void Store(uint32_t& index, uint32_t value) {
    ProgramOrder::DeviceStores();
    __atomic_store_n(&index, value, __ATOMIC_RELEASE);
  }

  const std::unique_ptr<RingMemory::Block> block_;
  const uint32_t mask_;
  const uint32_t log2_size_;
};

}  // namespace tokamak::verbs::kernel
