// Completion queues: the provider writes, the owner polls, and the owner's loop is notified.
//
// They add what verbs.h promises and libibverbs does not: a completion finds its queue pair, whose
// slot becomes free only when the completion is handed out; a queue pair's completions go with it;
// posts into Error that the provider refuses come back flushed, behind all that the provider has.
//
// Detection. While the owner has asked for an event the loop polls every round (os::Poller), in
// memory, without a system call. Before it sleeps it arms the device, and the completion channel's
// descriptor wakes it; rounds that spin never read that descriptor. The event of completions that
// were polled meanwhile is taken before the sleep, since it would end it at once.
//
// Thread rule: the loop's thread, except for Overrun.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/mutex.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/poller.h"
#include "lib/verbs/ibv/completion_channel.h"
#include "lib/verbs/ibv/context.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class CompletionOwner {
 public:
  virtual uint32_t completion_number() const = 0;  // ibv_wc::qp_num

  // `done` was taken out of the provider's queue. Returns true for a completion that the program
  // did not ask for, which goes no further. Called only for providers that make such (Quirks). May
  // post.
  virtual bool Arrived(const ibv_wc& done) = 0;

  // `done` is being handed out, or forgotten: its slot is free from now on. Sets in `to` the
  // program's id and what else the queue pair knows better than the provider; returns false for a
  // request that was forgotten before.
  virtual bool Finish(const ibv_wc& done, Completion* to) = 0;

  // The completion queue is dead: the queue pair ends. From any thread; never waits.
  virtual void Fail() = 0;

 protected:
  ~CompletionOwner() = default;
};

// The queue itself, shared by its handle and its queue pairs. Without the handle nobody drains it:
// if its depth is less than its queue pairs' slots, it may be overrun, see verbs.h.
class CompletionCore final : public CompletionTarget {
 public:
  static absl::StatusOr<std::shared_ptr<CompletionCore>> Make(std::shared_ptr<Context> context, os::EpollLoop& loop,
                                                              uint32_t depth);
  CompletionCore(std::shared_ptr<Context> context, os::EpollLoop& loop) : context_(std::move(context)), loop_(loop) {}
  ~CompletionCore();
  CompletionCore(const CompletionCore&) = delete;
  CompletionCore& operator=(const CompletionCore&) = delete;

  const Context* context() const { return context_.get(); }
  os::EpollLoop& loop() const { return loop_; }
  ibv_cq* queue() const { return queue_; }
  uint32_t depth() const { return static_cast<uint32_t>(queue_->cqe); }
  CompletionChannel& channel() { return *channel_; }
  absl::Status Resize(uint32_t depth);

  size_t Poll(absl::Span<Completion> completions);

  // With true, one more queue pair waits for completions of its own requests, which are taken out
  // as they come, polled or not; with false, one less.
  void Await(bool more) { awaiting_ += more ? 1 : -1; }
  bool awaited() const { return awaiting_ > 0; }

  // Takes all completions out of the provider's queue, for a later Poll. Returns whether there was
  // any.
  bool TakeAll();

  // Return whether Poll would give anything; whether any of that is a flush of ours.
  bool AnyWaiting();
  bool AnyFlushed() const { return !flushed_.empty(); }

  // ibv_req_notify_cq.
  void Arm(bool solicited_only);

  // Returns true, once, if completions were taken out since the device was armed: its event is
  // there or will come.
  bool EventIsStale() { return std::exchange(taken_since_armed_, false); }

  void OnEvents(std::function<void()> heard) { heard_ = std::move(heard); }
  void OnChannelEvent() override;

  // A queue pair completes here from Add on. Remove is called once before it is destroyed or reset,
  // so that Overrun leaves it alone, and Forget once after.
  void Add(CompletionOwner& owner);
  void Remove(CompletionOwner& owner);

  // Drops the present completions of `owner`, and with `for_good` the owner itself.
  void Forget(CompletionOwner& owner, bool for_good);

  // A request that the provider refused comes back flushed, after everything that the provider has.
  void AddFlush(uint32_t number, uint64_t wr_id);

  void OnAsyncEvent(ibv_event_type event) override;

 private:
  // Completions taken in one call of the provider, ahead of Poll.
  static constexpr size_t kBatch = 16;

  int EntriesFor(uint32_t depth) const;
  size_t Fetch(ibv_wc* to, size_t most);
  size_t PollProvider(ibv_wc* to, size_t most);
  CompletionOwner* Find(uint32_t number);
  bool HandOut(const ibv_wc& done, Completion* to);

  const std::shared_ptr<Context> context_;
  os::EpollLoop& loop_;
  std::shared_ptr<CompletionChannel> channel_;
  ibv_cq* queue_ = nullptr;
  unsigned int unacknowledged_ = 0;  // events
  bool taken_since_armed_ = false;
  std::function<void()> heard_;

  // Completions taken out of the provider's queue, from held_begin_ on; bounded by the depths of
  // the queue pairs' queues.
  std::vector<ibv_wc> held_;
  size_t held_begin_ = 0;
  std::vector<ibv_wc> flushed_;  // by us; bounded likewise
  int awaiting_ = 0;             // queue pairs

  absl::flat_hash_map<uint32_t, CompletionOwner*> owners_;
  CompletionOwner* last_ = nullptr;  // found last

  std::atomic<bool> dead_{false};  // overrun
  base::Mutex overrun_mutex_;
  std::vector<CompletionOwner*> doomed_ ABSL_GUARDED_BY(overrun_mutex_);  // by an overrun
};

class IbvCompletionQueue final : public CompletionQueue, private os::Poller {
 public:
  IbvCompletionQueue(std::shared_ptr<CompletionCore> core, std::function<void()> on_event);
  ~IbvCompletionQueue() override;

  size_t Poll(absl::Span<Completion> completions) override { return core_->Poll(completions); }
  void RequestNotify(bool solicited_only) override;
  uint32_t depth() const override { return core_->depth(); }
  absl::Status Resize(uint32_t depth) override;

  const std::shared_ptr<CompletionCore>& core() const { return core_; }

 private:
  enum Armed : uint8_t { kNotArmed, kSolicited, kAll };

  // os::Poller.
  bool Poll() override;
  void Arm() override;
  int descriptor() const override { return -1; }

  void Deliver();

  const std::shared_ptr<CompletionCore> core_;
  const std::shared_ptr<std::function<void()>> on_event_;
  Armed asked_ = kNotArmed;   // by the owner
  Armed device_ = kNotArmed;  // last armed
  bool told_ = false;         // true after a device's event, which disarms it
  bool look_ = false;         // true if armed late: then what waits already raises the event
  os::PollerHandle poller_;
};

}  // namespace tokamak::verbs::ibv
