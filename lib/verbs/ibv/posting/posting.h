// Posting checks our requests against the promises of verbs.h, and translates them into libibverbs'
// work requests in arrays of fixed size, so it allocates nothing.
//
// Providers check little, and differ in what they check, so the checks are ours. Empty Sges are
// left out: to some devices length 0 means 2^31 bytes.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/verbs/ibv/translation/limits.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// Work requests in one call of the provider, and the Sges of all of them.
constexpr size_t kBatchRequests = 16;
constexpr size_t kBatchSges = 64;
static_assert(kBatchSges >= kMaxSges, "a batch takes one request at least");

// A queue's sizes.
struct QueueBounds {
  uint32_t max_sges = 1;
  uint32_t max_inline = 0;  // bytes
};

// kUnimplemented: a capability that the device lacks. kInvalidArgument: outside of the limits. A
// bind's memory is not checked.
absl::Status CheckSend(const SendRequest& request, const Limits& limits, const QueueBounds& bounds);
absl::Status CheckReceive(const ReceiveRequest& request, const Limits& limits, const QueueBounds& bounds);
absl::Status QueueFull(uint32_t depth);

// Requests that a call of the provider took.
struct Posted {
  size_t wanted = 0;
  size_t accepted = 0;
  int error = 0;  // an errno, positive or negative, or 0
};

// A chain for ibv_post_send or ibv_post_recv: Request is ibv_send_wr or ibv_recv_wr.
template <typename Request>
class Batch final {
 public:
  Batch() = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool HasRoomFor(size_t sges) const { return size_ < kBatchRequests && sges_used_ + sges <= kBatchSges; }

  Request& Add(uint64_t wr_id);

  // Gives the last request its Sges. `never_none`: one empty Sge stands in for none, since siw
  // refuses receives without any.
  void SetSges(absl::Span<const Sge> sges, bool never_none);

  Request* first() { return requests_.data(); }
  // Returns how many requests a call took that ended with `error` and named `bad` as the first that
  // it refused. If it names none it took all: its doorbell failed because the queue pair had ended.
  size_t Accepted(int error, const Request* bad) const {
    return error == 0 || bad == nullptr ? size_ : static_cast<size_t>(bad - requests_.data());
  }
  void Clear() { size_ = sges_used_ = 0; }

  // Posts the chain, which is not empty, and clears it.
  Posted PostTo(ibv_qp* queue_pair);

  // Clears it as if the provider had refused all.
  Posted Refuse(int error) {
    const Posted posted = {size_, 0, error};
    Clear();
    return posted;
  }

 private:
  std::array<Request, kBatchRequests> requests_;
  std::array<ibv_sge, kBatchSges> sges_;
  size_t size_ = 0;
  size_t sges_used_ = 0;
};
using SendBatch = Batch<ibv_send_wr>;
using ReceiveBatch = Batch<ibv_recv_wr>;
extern template class Batch<ibv_send_wr>;
extern template class Batch<ibv_recv_wr>;

// Adds a checked request; of a bind all but the memory (IbvMemoryWindow::PrepareBind).
ibv_send_wr& AddSend(const SendRequest& request, uint64_t wr_id, bool never_none, SendBatch* batch);
void AddReceive(const ReceiveRequest& request, uint64_t wr_id, bool never_none, ReceiveBatch* batch);

}  // namespace tokamak::verbs::ibv
