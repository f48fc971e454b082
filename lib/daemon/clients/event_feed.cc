#include "lib/daemon/clients/event_feed.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/client/protocol/frame.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/wire.h"

namespace tokamak::daemon {

void EventFeed::Start(store::Store& store, uint64_t request_id, bool existing) {
  store_ = &store;
  request_id_ = request_id;
  caught_up_ = !existing;
  told_to_.reset();
  retry_.Cancel();
  subscription_ = store.Subscribe([this](absl::Span<const store::Event> events) { OnEvents(events); });
  if (existing) subscription_->CallSoon();
}

void EventFeed::Stop() {
  retry_.Cancel();
  telling_dropped_.Cancel();
  subscription_.reset();
}

// The store reflects these: its next page begins where they end.
void EventFeed::OnEvents(absl::Span<const store::Event> events) {
  if (caught_up_) return Tell(request_id_, events);
  std::vector<store::Event> of_told;
  std::copy_if(events.begin(), events.end(), std::back_inserter(of_told),
               [this](const store::Event& event) { return told_to_.has_value() && !(*told_to_ < event.id); });
  if (!of_told.empty()) Tell(request_id_, of_told);
  TellNextPage();  // with the dropped count
}

void EventFeed::TellNextPage() {
  if (congested_()) {
    if (!retry_.armed()) retry_ = loop_.RunAfter(kRetry, [this] { subscription_->CallSoon(); });
    return;
  }
  const std::vector<store::StoredObject> page = store_->List(client::kMaxEvents, told_to_);
  caught_up_ = page.size() < client::kMaxEvents;
  if (!page.empty()) told_to_ = page.back().id;
  client::EventsNotification notification;
  notification.dropped = std::exchange(dropped_, 0);
  notification.caught_up = caught_up_;
  for (const store::StoredObject& info : page) {
    if (info.state != store::State::kSealed) continue;
    store::Event event;
    event.id = info.id;
    event.data_size = info.location.data_size;
    event.metadata_size = info.location.metadata_size;
    event.origin = info.origin;
    event.name = info.name;
    notification.events.push_back(ToWire(event));
  }
  send_(client::Encode(request_id_, notification));
  if (!caught_up_) subscription_->CallSoon();
}

void EventFeed::Tell(uint64_t request_id, absl::Span<const store::Event> events) {
  while (!events.empty() || dropped_ > 0) {
    if (congested_()) {
      dropped_ += events.size();
      request_id_ = request_id;
      return TellDroppedLater();
    }
    const size_t count = std::min(events.size(), client::kMaxEvents);
    client::EventsNotification notification;
    notification.dropped = std::exchange(dropped_, 0);
    notification.caught_up = caught_up_;
    for (const store::Event& event : events.first(count)) notification.events.push_back(ToWire(event));
    send_(client::Encode(request_id, notification));
    events.remove_prefix(count);
  }
}

// Else missed events show only with the next one.
void EventFeed::TellDroppedLater() {
  if (telling_dropped_.armed()) return;
  telling_dropped_ = loop_.RunAfter(kRetry, [this] {
    if (dropped_ == 0 || !caught_up_) return;
    if (congested_()) return TellDroppedLater();
    Tell(request_id_, {});
  });
}

}  // namespace tokamak::daemon
