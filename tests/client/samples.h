// One message of every kind, with every field set, and a way to visit them all.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/object_id.h"
#include "lib/client/protocol/messages.h"

namespace tokamak::client {

inline base::ObjectId SampleId(int n) { return base::ObjectId::FromName(std::to_string(n)); }

inline const std::vector<uint8_t>& SampleBytes() {
  static const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5};
  return bytes;
}

inline ObjectEntry SampleObject() {
  return {SampleId(1), 1 << 20, 77, 3, 123456, ObjectState::kSealed, Origin::kPulled, true, "1"};
}

template <typename M>
M AboutObject() {
  M message;
  message.id = SampleId(9);
  return message;
}

// Calls visit(message) for one message of every kind.
template <typename Visitor>
void ForEachSample(Visitor visit) {
  HelloRequest hello;
  hello.access = Access::kReadAndCreate;
  hello.name = "a client";
  hello.quota = 1 << 20;
  visit(hello);
  WelcomeReply welcome;
  welcome.arena_size = uint64_t{1} << 40;
  welcome.capacity = 1000;
  welcome.incarnation = 7;
  welcome.node = "node-1";
  visit(welcome);

  CreateRequest create = AboutObject<CreateRequest>();
  create.data_size = 10;
  create.metadata_size = 20;
  create.name = "9";
  visit(create);
  CreateReply created;
  created.location = {64, 10, 20};
  visit(created);
  CreateAndSealRequest create_and_seal;
  create_and_seal.objects = {{SampleId(1), SampleBytes(), {}, "1"}, {SampleId(2), {}, SampleBytes()}};
  create_and_seal.together = true;
  visit(create_and_seal);
  CreateAndSealReply create_and_sealed;
  create_and_sealed.outcomes = {{}, {absl::StatusCode::kAlreadyExists, "exists"}};
  visit(create_and_sealed);

  visit(AboutObject<SealRequest>());
  visit(SealRequest::Reply());
  visit(AboutObject<AbortRequest>());
  visit(AbortRequest::Reply());
  visit(AboutObject<DeleteRequest>());
  visit(DeleteRequest::Reply());
  visit(AboutObject<TouchRequest>());
  visit(TouchRequest::Reply());
  visit(AboutObject<UnpinRequest>());
  visit(UnpinRequest::Reply());

  GetRequest get;
  get.timeout_microseconds = 1'000'000;
  get.protocol = Protocol::kWrite;
  get.ids = {SampleId(1), SampleId(2)};
  visit(get);
  GetReply got;
  got.entries = {{{}, {64, 10, 20}}, {{absl::StatusCode::kDeadlineExceeded, "not in time"}, {}}};
  visit(got);
  PrefetchRequest prefetch;
  prefetch.timeout_microseconds = 2'000'000;
  prefetch.pin = true;
  prefetch.ids = {SampleId(1), SampleId(2)};
  visit(prefetch);
  PrefetchReply prefetched;
  prefetched.outcomes = {{}, {absl::StatusCode::kNotFound, "nowhere"}};
  visit(prefetched);
  PushRequest push;
  push.timeout_microseconds = 3'000'000;
  push.node = "node-2";
  push.ids = {SampleId(1)};
  visit(push);
  PushReply pushed;
  pushed.outcomes = {{absl::StatusCode::kUnavailable, "it does not answer"}};
  visit(pushed);
  CancelRequest cancel;
  cancel.request_id = 8;
  visit(cancel);
  visit(CancelRequest::Reply());
  ReleaseRequest release;
  release.ids = {SampleId(1), SampleId(1)};
  visit(release);
  visit(ReleaseRequest::Reply());

  visit(AboutObject<ContainsRequest>());
  ContainsReply contains;
  contains.here = true;
  visit(contains);
  ListRequest list;
  list.limit = 5;
  list.continued = true;
  list.after = SampleId(3);
  visit(list);
  ListReply listed;
  listed.objects = {SampleObject()};
  listed.more = true;
  visit(listed);
  visit(AboutObject<StatRequest>());
  StatReply stat;
  stat.here = true;
  stat.located = true;
  stat.object = SampleObject();
  stat.holders = {"node-1", "node-2"};
  visit(stat);

  EvictRequest evict;
  evict.bytes = 4096;
  visit(evict);
  EvictReply evicted;
  evicted.objects = 2;
  evicted.bytes = 8192;
  visit(evicted);
  visit(AboutObject<ProgressRequest>());
  ProgressReply progress;
  progress.moved = 1 << 20;
  progress.total = uint64_t{5} << 30;
  visit(progress);
  visit(AboutObject<HashRequest>());
  HashReply hash;
  hash.hash = 0x0123456789abcdef;
  visit(hash);
  WaitRequest wait;
  wait.timeout_microseconds = 5;
  wait.count = 1;
  wait.scope = Scope::kAnywhere;
  wait.ids = {SampleId(1), SampleId(2)};
  visit(wait);
  WaitReply waited;
  waited.ready = {1, 0};
  visit(waited);

  SubscribeRequest subscribe;
  subscribe.existing = true;
  visit(subscribe);
  visit(SubscribeRequest::Reply());
  EventsNotification events;
  events.dropped = 4;
  events.caught_up = false;
  events.events = {{EventKind::kEvicted, Origin::kPulled, SampleId(1), 10, 20, "1"}};
  visit(events);

  visit(NodesRequest());
  NodesReply nodes;
  nodes.nodes = {{"node-1", "10.0.0.1:7000", "ibv:mlx5_0", 3, 1 << 30, true}};
  visit(nodes);
  ClusterRequest cluster;
  cluster.after = "node-0";
  visit(cluster);
  ClusterReply viewed;
  viewed.located = true;
  viewed.nodes = {{{"node-1", "10.0.0.1:7000", "ibv:mlx5_0", 3, 1 << 30, true},
                   NodeState::kSuspected,
                   7'000'000,
                   "10.0.0.1:9464",
                   {{"store_used_bytes", 4096}}}};
  viewed.more = true;
  visit(viewed);
  visit(NodeStatsRequest());
  NodeStatsReply stats;
  stats.node = "node-1";
  stats.device = "soft:udp@127.0.0.1";
  stats.numbers = {{"store_used_bytes", 4096}};
  visit(stats);
}

}  // namespace tokamak::client
