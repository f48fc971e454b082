// UserCompletionQueue is a completion queue of a program: the NIC's completions go to the ring that
// the program polls, and an event to its channel if it asked for one.
//
// Thread rule: one lock's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "lib/verbs/kernel/async_events.h"
#include "lib/verbs/kernel/event_pipe.h"
#include "lib/verbs/kernel/object.h"
#include "lib/verbs/kernel/program/provider_ring.h"
#include "lib/verbs/kernel/user_device.h"

namespace tokamak::verbs::kernel {

class CompletionOwner {
 public:
  // One of its requests is over. Returns false if the program gets no completion.
  virtual bool Finish(const Completion& completion, ib_uverbs_wc* work_completion) = 0;

  virtual void OnQueueLost() = 0;

 protected:
  ~CompletionOwner() = default;
};

class UserCompletionQueue final : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kCompletionQueue;

  // `name` is the program's, for events; `channel` may be null. Errors: ENOMEM.
  static int Make(UserDevice& device, RingMemory& memory, uint32_t depth, uint64_t name,
                  std::shared_ptr<EventPipe> channel, AsyncEvents& async, std::unique_ptr<UserCompletionQueue>* made);
  ~UserCompletionQueue() override;

  CompletionQueue& queue() { return *queue_; }
  const ProviderRing& ring() const { return *ring_; }

  void Add(uint32_t queue_pair, CompletionOwner& owner) { owners_.emplace(queue_pair, &owner); }
  void Remove(uint32_t queue_pair) { owners_.erase(queue_pair); }

  // The next completion, or the next solicited one or error, raises an event.
  void Arm(bool solicited_only);

  // Moves the NIC's completions so far to the program's ring.
  void Drain();

  // Adds a completion that is not the NIC's.
  void Push(const ib_uverbs_wc& work_completion, bool solicited);

  // Makes a ring of another depth, with the waiting completions. EINVAL: it would not hold those.
  // ENOMEM.
  int Resize(uint32_t depth);

  // Must be called when the program destroys the queue. Return how many events of each kind it has
  // read.
  uint32_t RetireCompletionEvents() { return channel_ != nullptr ? channel_->Retire(name_) : 0; }
  uint32_t RetireAsyncEvents() { return async_.Retire(name_); }

 private:
  enum class Armed : uint8_t { kNot, kSolicited, kAny };

  UserCompletionQueue(RingMemory& memory, uint64_t name, std::shared_ptr<EventPipe> channel, AsyncEvents& async,
                      std::unique_ptr<ProviderRing> ring);

  void Lose();

  RingMemory& memory_;
  const uint64_t name_;
  const std::shared_ptr<EventPipe> channel_;
  AsyncEvents& async_;
  std::unique_ptr<ProviderRing> ring_;
  uint32_t produced_ = 0;  // the ring's producer index
  Armed armed_ = Armed::kNot;
  bool lost_ = false;  // by an overrun
  std::map<uint32_t, CompletionOwner*> owners_;
  std::unique_ptr<CompletionQueue> queue_;
};

}  // namespace tokamak::verbs::kernel
