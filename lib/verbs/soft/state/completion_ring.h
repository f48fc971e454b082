// CompletionRing is the memory of a completion queue: the NIC writes at one end, the owner polls at
// the other.
//
// Publish, once per turn, makes completions visible and raises the event that the owner asked for.
// No wake-up is lost: the owner arms, then looks at the tail; the NIC moves the tail, then looks at
// the armed flag; both sequentially consistent.
// Thread rule: Poll, Arm: the owner's thread, never waiting. Push, Publish: under the NIC's mutex.
// Forget, Release, Resize, Close: the owner's thread under the NIC's mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

class CompletionRing final {
  struct Entry {
    Completion completion;
    uint64_t* released = nullptr;
    uint64_t release = 0;
  };

 public:
  using Space = std::vector<Entry>;
  static Space SpaceFor(uint32_t depth);

  CompletionRing(uint32_t depth, std::unique_ptr<base::Signal> event, base::EventLoop& loop);

  size_t Poll(absl::Span<Completion> completions);
  void Arm(bool solicited_only);
  uint32_t depth() const { return depth_; }
  base::EventLoop& loop() const { return loop_; }

  // Adds a completion; polling it sets *released to at least `release`. Returns false when the ring
  // is full: the queue is dead from then on. A closed or dead one swallows everything.
  bool Push(const Completion& completion, uint64_t* released, uint64_t release, bool solicited) REQUIRES_NIC_MUTEX;
  void Publish() REQUIRES_NIC_MUTEX;
  bool dead() const REQUIRES_NIC_MUTEX { return dead_; }

  // Removes, without a gap, the completions of queue pair `number` that wait to release into
  // `released`, and releases as much as polling them would have: other queue pairs of a shared
  // queue still release their own.
  void Forget(uint32_t number, uint64_t* released) REQUIRES_NIC_MUTEX;

  // Acts as if one that releases `release`, the latest so far, were pushed and forgotten.
  void Release(uint64_t* released, uint64_t release) REQUIRES_NIC_MUTEX;

  // Moves waiting completions to `space`, made for `depth`, and leaves the old space there, to be
  // dropped without the mutex. kInvalidArgument: more wait.
  absl::Status Resize(uint32_t depth, Space* space) REQUIRES_NIC_MUTEX;

  // Ends events. Returns the signal, to be dropped without the mutex.
  std::unique_ptr<base::Signal> Close() REQUIRES_NIC_MUTEX;
  bool closed() const REQUIRES_NIC_MUTEX { return event_ == nullptr; }

  // The NIC's note.
  bool unpublished GUARDED_BY_NIC_MUTEX = false;

 private:
  enum Armed : uint32_t { kNotArmed, kArmed, kArmedSolicited };

  uint32_t depth_;
  base::EventLoop& loop_;
  Space entries_;  // changed by Resize alone
  size_t mask_;

  // NIC.
  std::unique_ptr<base::Signal> event_ GUARDED_BY_NIC_MUTEX;
  uint64_t written_ GUARDED_BY_NIC_MUTEX = 0;
  bool any_news_ GUARDED_BY_NIC_MUTEX = false;  // since the last chance to raise an event
  bool solicited_news_ GUARDED_BY_NIC_MUTEX = false;
  bool dead_ GUARDED_BY_NIC_MUTEX = false;

  alignas(64) std::atomic<uint64_t> head_{0};  // owner's
  alignas(64) std::atomic<uint64_t> tail_{0};  // NIC's
  std::atomic<uint32_t> armed_{kNotArmed};
};

}  // namespace tokamak::verbs::soft
