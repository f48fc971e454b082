#include "lib/daemon/clients/wire.h"

#include <string>

#include "lib/client/protocol/protocol.h"
#include "lib/transport/object_access.h"

namespace tokamak::daemon {

static_assert(static_cast<int>(client::Protocol::kWrite) == static_cast<int>(transport::Protocol::kWrite));
static_assert(static_cast<int>(client::ObjectState::kAborted) == static_cast<int>(store::State::kAborted));
static_assert(static_cast<int>(client::Origin::kPulled) == static_cast<int>(store::Origin::kPulled));
static_assert(static_cast<int>(client::EventKind::kRefused) == static_cast<int>(store::Event::Kind::kRefused));
static_assert(static_cast<int>(client::NodeState::kSilent) == static_cast<int>(node::NodeState::kSilent));
static_assert(client::kMaxNumbersOfNode >= node::NodeNumbers::kMaxNumbers &&
              client::kMaxName >= node::NodeNumbers::kMaxName && client::kMaxAddress >= node::NodeNumbers::kMaxPage);
static_assert(client::kMaxHolders >= directory::kMaxHoldersNamed && client::kMaxName >= directory::kMaxNodeName);

client::Location ToWire(const store::Location& place) { return {place.offset, place.data_size, place.metadata_size}; }

client::ObjectEntry ToWire(const store::StoredObject& info, base::Time now) {
  client::ObjectEntry entry;
  entry.id = info.id;
  entry.data_size = info.location.data_size;
  entry.metadata_size = info.location.metadata_size;
  entry.pins = info.pins;
  entry.age_microseconds = static_cast<uint64_t>((now - info.created_at).microseconds());
  entry.state = static_cast<client::ObjectState>(info.state);
  entry.origin = static_cast<client::Origin>(info.origin);
  entry.pinned_here = info.pinned_here;
  entry.name = std::string(info.name.text());
  return entry;
}

client::EventEntry ToWire(const store::Event& event) {
  return {static_cast<client::EventKind>(event.kind),
          static_cast<client::Origin>(event.origin),
          event.id,
          event.data_size,
          event.metadata_size,
          std::string(event.name.text())};
}

client::NodeEntry ToWire(const directory::NodeInfo& info, bool is_this) {
  client::NodeEntry entry;
  entry.name = info.id;
  entry.address = info.engines.empty() ? "" : info.engines.front().substr(0, client::kMaxAddress);
  entry.device = info.device.substr(0, client::kMaxName);
  entry.incarnation = info.incarnation;
  entry.capacity = info.capacity;
  entry.is_this = is_this;
  return entry;
}

client::ViewedEntry ToWire(const node::ClusterView::Entry& entry, bool is_this) {
  client::ViewedEntry viewed;
  viewed.node = ToWire(entry.node, is_this);
  viewed.state = static_cast<client::NodeState>(entry.state);
  viewed.unheard_microseconds = static_cast<uint64_t>(entry.unheard_for.microseconds());
  if (!entry.numbers.has_value()) return viewed;
  viewed.page = entry.numbers->page;
  for (const node::NodeNumber& number : entry.numbers->numbers) viewed.numbers.push_back({number.name, number.value});
  return viewed;
}

}  // namespace tokamak::daemon
