// Outbox sends into a mailbox that may be full: what does not fit waits here, in order, and goes on
// when there is room.
//
// The sender looks at waiting() before it starts something new, so that what waits stays bounded by
// what it has started.
// Thread rule: the sending loop.
#pragma once

#include <cstddef>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/mailbox.h"

namespace tokamak::node {

template <typename T>
class Outbox final {
 public:
  // `loop` and `mailbox` must outlive it.
  Outbox(base::EventLoop& loop, base::Mailbox<T>& mailbox) : loop_(loop), mailbox_(mailbox) {}

  void Send(T value) {
    if (waiting_.empty() && mailbox_.Send(std::move(value))) return;
    waiting_.push_back(std::move(value));
    if (!retry_.armed()) RetryLater();
  }

  size_t waiting() const { return waiting_.size(); }

  // Takes the values still waiting when the sender ends.
  std::vector<T> TakeWaiting() {
    std::vector<T> left(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
    waiting_.clear();
    return left;
  }

 private:
  // A receiver that is behind needs about so long for what it has.
  static constexpr base::Duration kRetryDelay = base::Microseconds(20);

  void RetryLater() {
    retry_ = loop_.RunAfter(kRetryDelay, [this] { Retry(); });
  }
  void Retry() {
    while (!waiting_.empty() && mailbox_.Send(std::move(waiting_.front()))) waiting_.pop_front();
    if (!waiting_.empty()) RetryLater();
  }

  base::EventLoop& loop_;
  base::Mailbox<T>& mailbox_;
  std::deque<T> waiting_;
  base::Timer retry_;
};

}  // namespace tokamak::node
