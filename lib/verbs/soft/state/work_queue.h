// Rings through which an owner hands work requests to the NIC, like a hardware NIC's queues in
// memory.
//
// Posting copies into slots: no allocation, no lock. Indexes count up for ever.
//
// Law: released <= tail <= released + depth. A slot is reused only once its completion, or a later
// one, was polled; the owner polls, so only `tail` is shared with the NIC. (Shared receives: see
// shared_receives.h.)
// Thread rule: posting and `released`: the owner's thread; the rest: the NIC, under its mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/verbs/soft/state/memory.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kMaxSges = 8;
constexpr uint32_t kMaxInline = 256;

struct SourceBytes {
  uint32_t length = 0;  // bytes, all sges
  uint8_t sge_count = 0;
  bool is_inline = false;  // true if they lie in the queue
  Sge* sges = nullptr;     // as many as the queue gives each request
};

struct SendSlot : SourceBytes {
  // Written when posted.
  uint64_t id = 0;
  uint64_t remote_address = 0;
  uint64_t compare = 0;
  uint64_t swap_or_add = 0;
  uint32_t rkey = 0;
  uint32_t immediate = 0;
  Opcode opcode = Opcode::kSend;
  bool signaled = false;
  bool solicited = false;
  bool fence = false;
  WindowBinding bind;

  // The NIC's: packets [first, end) carry the request or, for a READ, its answer.
  uint64_t first = 0;
  uint64_t end = 0;
  uint32_t piece = 0;    // READ: packets of the answer that are asked for at once
  bool refused = false;  // true if carried out here, without success

  bool wants_answer() const {
    return opcode == Opcode::kRead || opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd;
  }

  // True if the NIC carries it out alone, without a packet.
  bool is_local() const { return opcode == Opcode::kBindWindow || opcode == Opcode::kLocalInvalidate; }
};

struct DatagramSlot : SourceBytes {
  uint64_t id = 0;
  Address peer;  // as fabrics write it
  uint32_t queue_pair_number = 0;
  uint32_t qkey = 0;
  uint32_t immediate = 0;
  bool has_immediate = false;
  bool signaled = false;
  bool solicited = false;
  uint8_t traffic_class = 0;

  // The NIC's: true if no packet leaves.
  bool skipped = false;
};

struct ReceiveSlot {
  uint64_t id = 0;
  uint8_t sge_count = 0;
  uint32_t length = 0;  // bytes, all sges
  Sge* sges = nullptr;  // as many as the queue gives each request
};

template <typename Slot>
class WorkQueue final {
 public:
  WorkQueue(uint32_t depth, uint32_t max_sges, uint32_t inline_bytes)
      : depth_(depth),
        inline_bytes_(inline_bytes),
        slots_(RoundUp(depth)),
        mask_(slots_.size() - 1),
        sges_(slots_.size() * max_sges),
        inline_(slots_.size() * inline_bytes) {
    for (size_t i = 0; i < slots_.size(); ++i) slots_[i].sges = sges_.data() + i * max_sges;
  }

  // Owner. Publish shows prepared slots to the NIC.
  bool full() const { return prepared_ - released_ >= depth_; }
  Slot& next() { return slots_[prepared_ & mask_]; }
  uint8_t* next_inline() { return inline_.data() + (prepared_ & mask_) * inline_bytes_; }
  void Prepare() { ++prepared_; }
  void Publish() { tail_.store(prepared_, std::memory_order_seq_cst); }

  // Owner: polling notes here that slots before an index are free.
  uint64_t* released() { return &released_; }

  // Owner: frees all slots; no request may be outstanding.
  void ReleaseAll() REQUIRES_NIC_MUTEX { released_ = prepared_; }

  // NIC.
  uint64_t tail() const { return tail_.load(std::memory_order_seq_cst); }
  Slot& at(uint64_t index) REQUIRES_NIC_MUTEX { return slots_[index & mask_]; }
  const uint8_t* inline_at(uint64_t index) const REQUIRES_NIC_MUTEX {
    return inline_.data() + (index & mask_) * inline_bytes_;
  }

  uint32_t depth() const { return depth_; }

 private:
  static size_t RoundUp(size_t n) {
    size_t power = 1;
    while (power < n) power *= 2;
    return power;
  }

  const uint32_t depth_;
  const uint32_t inline_bytes_;
  std::vector<Slot> slots_;
  const size_t mask_;
  std::vector<Sge> sges_;
  std::vector<uint8_t> inline_;
  uint64_t prepared_ = 0;
  uint64_t released_ = 0;
  alignas(64) std::atomic<uint64_t> tail_{0};
};

using SendQueue = WorkQueue<SendSlot>;
using DatagramQueue = WorkQueue<DatagramSlot>;
using ReceiveQueue = WorkQueue<ReceiveSlot>;

}  // namespace tokamak::verbs::soft
