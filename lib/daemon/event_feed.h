// EventFeed tells one client what becomes of the store's objects, in frames of at most
// client::kMaxEvents events.
//
// Events are not kept for a client that does not take them: while it is congested they are left out
// and counted, and the next frame says how many were. Nobody else waits for such a client, and
// nothing grows.
// Thread rule: the control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

class EventFeed final {
 public:
  using Send = std::function<void(std::vector<uint8_t> frame)>;
  using Congested = std::function<bool()>;

  EventFeed(Send send, Congested congested) : send_(std::move(send)), congested_(std::move(congested)) {}
  EventFeed(const EventFeed&) = delete;
  EventFeed& operator=(const EventFeed&) = delete;

  // From now on the store's events go out as answers to this request, and to no earlier one.
  void Start(store::Store& store, uint64_t request_id);
  void Stop() { subscription_.reset(); }

  void Tell(uint64_t request_id, absl::Span<const store::Event> events);

 private:
  const Send send_;
  const Congested congested_;
  uint64_t dropped_ = 0;  // left out since the last frame
  std::unique_ptr<store::Handle> subscription_;
};

}  // namespace tokamak::daemon
