#include "lib/client/convert.h"

#include <chrono>
#include <utility>
#include <vector>

namespace tokamak::client {

namespace {

std::vector<NodeNumber> ToPublic(std::vector<NumberEntry> entries) {
  std::vector<NodeNumber> numbers;
  numbers.reserve(entries.size());
  for (NumberEntry& entry : entries) numbers.push_back({std::move(entry.name), entry.value});
  return numbers;
}

}  // namespace

static_assert(static_cast<int>(StatusCode::kUnauthenticated) == static_cast<int>(absl::StatusCode::kUnauthenticated),
              "both have gRPC's numbers");

Status ToPublic(const absl::Status& status) {
  if (status.ok()) return Status();
  return Status(static_cast<StatusCode>(status.code()), {status.message().data(), status.message().size()});
}

ObjectInfo ToPublic(ObjectEntry entry) {
  ObjectInfo info;
  info.id = entry.id;
  info.data_size = entry.data_size;
  info.metadata_size = entry.metadata_size;
  info.pins = entry.pins;
  info.age = std::chrono::microseconds(entry.age_microseconds);
  info.state = entry.state;
  info.origin = entry.origin;
  info.pinned_here = entry.pinned_here;
  info.name = std::move(entry.name);
  return info;
}

ObjectStat ToPublic(StatReply reply) {
  ObjectStat stat;
  stat.here = reply.here;
  stat.located = reply.located;
  stat.object = ToPublic(std::move(reply.object));
  stat.holders = std::move(reply.holders);
  return stat;
}

NodeStats ToPublic(NodeStatsReply reply) {
  NodeStats stats;
  stats.node = std::move(reply.node);
  stats.device = std::move(reply.device);
  stats.numbers = ToPublic(std::move(reply.numbers));
  return stats;
}

NodeInfo ToPublic(NodeEntry entry) {
  NodeInfo info;
  info.name = std::move(entry.name);
  info.address = std::move(entry.address);
  info.device = std::move(entry.device);
  info.incarnation = entry.incarnation;
  info.capacity = entry.capacity;
  info.is_this = entry.is_this;
  return info;
}

ViewedNode ToPublic(ViewedEntry entry) {
  ViewedNode node;
  node.info = ToPublic(std::move(entry.node));
  node.state = entry.state;
  node.unheard_for = std::chrono::microseconds(entry.unheard_microseconds);
  node.page = std::move(entry.page);
  node.numbers = ToPublic(std::move(entry.numbers));
  return node;
}

Events ToPublic(EventsNotification notification) {
  Events events;
  events.dropped = notification.dropped;
  events.caught_up = notification.caught_up;
  events.events.reserve(notification.events.size());
  for (EventEntry& entry : notification.events) {
    events.events.push_back(
        {entry.kind, entry.origin, entry.id, entry.data_size, entry.metadata_size, std::move(entry.name)});
  }
  return events;
}

}  // namespace tokamak::client
