// EventFeed reports the store's events to one client, in frames of at most client::kMaxEvents
// events.
//
// A congested client gets only their count, once it has caught up: nothing waits or grows. The list
// of objects existing at its subscription waits in the store. Thread rule: the control loop.
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

  // Sends the store's events from now on as answers to this request, ending an earlier one; with
  // `existing`, after the sealed objects, by id. Each is listed once, then its events follow;
  // earlier ones show in its listing.
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
  uint64_t dropped_ = 0;  // since the last frame
  store::Store* store_ = nullptr;
  uint64_t request_id_ = 0;
  bool caught_up_ = true;
  std::optional<base::ObjectId> told_to_;  // existing objects after this are unlisted
  base::Timer retry_;
  base::Timer telling_dropped_;
  std::unique_ptr<store::Subscription> subscription_;
};

}  // namespace tokamak::daemon
