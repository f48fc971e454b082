// Subscribers receive the seals, deletions and evictions of objects in order, each from tasks of
// its own.
//
// Thread rule: the store's loop.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/store/types.h"

namespace tokamak::store {

// Everything since the last call; the span is valid during it.
using EventCallback = std::function<void(absl::Span<const Event> events)>;

class Subscription : public base::Handle {
 public:
  // Runs the callback in a later task, even without events. The store is then in the state that
  // they describe.
  virtual void CallSoon() = 0;
};

class Subscribers final {
 public:
  explicit Subscribers(base::EventLoop& loop) : loop_(loop) {}
  Subscribers(const Subscribers&) = delete;
  Subscribers& operator=(const Subscribers&) = delete;

  std::unique_ptr<Subscription> Add(EventCallback callback);

  void Publish(const Event& event);

 private:
  class Subscriber;

  base::EventLoop& loop_;
  std::vector<Subscriber*> subscribers_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::store
