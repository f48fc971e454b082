// Mailbox hands values from one thread to one event loop: a bounded ring and a wake-up.
//
// One thread sends (each of several senders has its own mailbox); the receiving loop drains the
// whole ring in one task. Neither side locks or allocates. The wake-up is the loop's
// (EventLoop::MakeSignal), so a mailbox joins two threads or, in a simulation, two loops of one
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/event_loop.h"

namespace tokamak::base {

// One producer, one consumer, bounded; wait-free on both sides.
template <typename T>
class Ring final {
 public:
  // Rounds `capacity` up to a power of two.
  explicit Ring(size_t capacity) : slots_(RoundUp(capacity)), mask_(slots_.size() - 1) {}

  // Producer. Returns false, leaving `value` as it was, when the ring is full.
  [[nodiscard]] bool Push(T&& value) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == slots_.size()) return false;
    slots_[tail & mask_] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Consumer. Returns false when the ring is empty.
  [[nodiscard]] bool Pop(T* value) {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    *value = std::move(slots_[head & mask_]);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Either side; exact only for the thread's own end.
  bool empty() const { return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire); }
  size_t capacity() const { return slots_.size(); }

 private:
  static size_t RoundUp(size_t n) {
    size_t power = 1;
    while (power < n) power *= 2;
    return power;
  }

  std::vector<T> slots_;
  const size_t mask_;
  alignas(64) std::atomic<size_t> head_{0};
  alignas(64) std::atomic<size_t> tail_{0};
};

template <typename T>
class Mailbox final {
 public:
  using Handler = std::function<void(T)>;

  // Runs `handler` on `loop` once for each value, in the order sent. Made and dropped on the loop's
  // thread, also by `handler`; dropping it discards unhandled values.
  Mailbox(EventLoop& loop, size_t capacity, Handler handler)
      : state_(std::make_shared<State>(capacity, std::move(handler))), signal_(loop.MakeSignal([this] { Drain(); })) {}
  ~Mailbox() { state_->dropped = true; }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Called on the sending thread. Returns false, leaving `value` as it was, when `capacity` values
  // wait: the sender must hold back, and report so.
  [[nodiscard]] bool Send(T&& value) {
    if (!state_->ring.Push(std::move(value))) return false;
    signal_->Raise();
    return true;
  }

 private:
  // Outlives a mailbox that its own handler drops.
  struct State {
    State(size_t capacity, Handler h) : ring(capacity), handler(std::move(h)) {}
    Ring<T> ring;
    const Handler handler;
    bool dropped = false;
  };

  void Drain() {
    const std::shared_ptr<State> state = state_;
    T value;
    for (size_t i = 0; i < state->ring.capacity() && state->ring.Pop(&value); ++i) {
      state->handler(std::move(value));
      if (state->dropped) return;
    }
    if (!state->ring.empty()) signal_->Raise();
  }

  const std::shared_ptr<State> state_;
  const std::unique_ptr<Signal> signal_;
};

}  // namespace tokamak::base
