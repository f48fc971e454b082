// EventFeed tells one client what becomes of the store's objects, in frames of at most
// client::kMaxEvents events.
//
// Events are not kept for a client that does not take them: while it is congested they are left out
// and counted. How many were is said as soon as it has caught up: with the next event, or in a
// frame of its own. Nobody else waits for such a client, and nothing grows. What existed when the
// client subscribed waits for it instead, in the store.
// Thread rule: the control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

class EventFeed final {
 public:
  using Send = std::function<void(std::vector<uint8_t> frame)>;
  using Congested = std::function<bool()>;

  EventFeed(base::EventLoop& loop, Send send, Congested congested)
      : loop_(loop), send_(std::move(send)), congested_(std::move(congested)) {}
  EventFeed(const EventFeed&) = delete;
  EventFeed& operator=(const EventFeed&) = delete;

  // From now on the store's events go out as answers to this request, and to no earlier one; with
  // `existing` behind what is sealed already, by id. Of that each object is told once, and what
  // becomes of it behind that; what happens to one that was not told yet shows when it is.
  void Start(store::Store& store, uint64_t request_id, bool existing);
  void Stop();

  void Tell(uint64_t request_id, absl::Span<const store::Event> events);

 private:
  static constexpr base::Duration kRetry = base::Milliseconds(10);

  void OnEvents(absl::Span<const store::Event> events);
  void TellNextPage();
  void TellDroppedLater();

  base::EventLoop& loop_;
  const Send send_;
  const Congested congested_;
  uint64_t dropped_ = 0;  // left out since the last frame
  store::Store* store_ = nullptr;
  uint64_t request_id_ = 0;
  bool caught_up_ = true;
  std::optional<base::ObjectId> told_to_;  // what existed and comes behind it by id was not told yet
  base::Timer retry_;
  base::Timer telling_dropped_;
  std::unique_ptr<store::Subscription> subscription_;
};

}  // namespace tokamak::daemon
