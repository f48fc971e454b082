// Shared receive queues: receives that many queue pairs draw from.
//
// Thread rule: the loop's thread, except for OnAsyncEvent.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/ibv/async_events.h"
#include "lib/verbs/ibv/memory.h"
#include "lib/verbs/ibv/posting/posting.h"
#include "lib/verbs/ibv/posting/shared_slots.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class SharedReceiver {
 public:
  virtual void SharedQueueDropped() = 0;  // it goes to Error

 protected:
  ~SharedReceiver() = default;
};

class SharedReceivesCore final : public SharedReceivesTarget {
 public:
  static absl::StatusOr<std::shared_ptr<SharedReceivesCore>> Make(std::shared_ptr<Domain> domain, uint32_t depth,
                                                                  uint32_t max_sges);
  SharedReceivesCore(std::shared_ptr<Domain> domain, uint32_t depth, uint32_t max_sges)
      : slots(depth), domain_(std::move(domain)), bounds_{max_sges, 0} {}
  ~SharedReceivesCore();
  SharedReceivesCore(const SharedReceivesCore&) = delete;
  SharedReceivesCore& operator=(const SharedReceivesCore&) = delete;

  PostResult PostReceive(absl::Span<const ReceiveRequest> requests);
  absl::Status Arm(uint32_t limit);

  ibv_srq* queue() const { return queue_; }
  const Domain* domain() const { return domain_.get(); }

  // Returns true if `loop` is the first queue pair's: all complete their receives on one loop.
  bool BelongsTo(const base::EventLoop& loop);
  void Add(SharedReceiver& receiver) { receivers_.push_back(&receiver); }
  void Remove(SharedReceiver& receiver);

  void SetHandle(const SharedReceiveQueue* handle) { handle_.store(handle); }
  void Close();  // the handle is dropped

  const SharedReceiveQueue* handle() const override { return handle_.load(); }
  void OnAsyncEvent(ibv_event_type) override {}

  SharedSlots slots;

 private:
  const std::shared_ptr<Domain> domain_;
  const QueueBounds bounds_;
  ibv_srq* queue_ = nullptr;
  const base::EventLoop* loop_ = nullptr;  // of the queue pairs
  std::vector<SharedReceiver*> receivers_;
  std::atomic<const SharedReceiveQueue*> handle_{nullptr};
};

class IbvSharedReceiveQueue final : public SharedReceiveQueue {
 public:
  explicit IbvSharedReceiveQueue(std::shared_ptr<SharedReceivesCore> core) : core_(std::move(core)) {
    core_->SetHandle(this);
  }
  ~IbvSharedReceiveQueue() override { core_->Close(); }

  PostResult PostReceive(absl::Span<const ReceiveRequest> requests) override { return core_->PostReceive(requests); }
  absl::Status Arm(uint32_t limit) override { return core_->Arm(limit); }

  const std::shared_ptr<SharedReceivesCore>& core() const { return core_; }

 private:
  const std::shared_ptr<SharedReceivesCore> core_;
};

}  // namespace tokamak::verbs::ibv
