#include "lib/daemon/event_feed.h"

#include <algorithm>
#include <utility>

#include "lib/client/frame.h"
#include "lib/client/messages.h"
#include "lib/daemon/wire.h"

namespace tokamak::daemon {

void EventFeed::Start(store::Store& store, uint64_t request_id) {
  subscription_ =
      store.Subscribe([this, request_id](absl::Span<const store::Event> events) { Tell(request_id, events); });
}

void EventFeed::Tell(uint64_t request_id, absl::Span<const store::Event> events) {
  while (!events.empty()) {
    if (congested_()) {
      dropped_ += events.size();
      return;
    }
    const size_t count = std::min(events.size(), client::kMaxEvents);
    client::EventsNotification notification;
    notification.dropped = std::exchange(dropped_, 0);
    for (const store::Event& event : events.first(count)) notification.events.push_back(ToWire(event));
    send_(client::Encode(request_id, notification));
    events.remove_prefix(count);
  }
}

}  // namespace tokamak::daemon
