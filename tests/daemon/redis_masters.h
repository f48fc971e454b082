// RedisMasters is the fixture of tests whose daemons have their directory behind Sentinels or in a
// Redis Cluster, and whose masters come and go.
#pragma once

#include <cstdint>

#include "tests/daemon/three_daemons.h"

namespace tokamak::daemon {

class RedisMasters : public ThreeDaemons {
 protected:
  using Cluster = directory::redis::RedisCluster;

  static constexpr char kKey[] = "{tokamak}:server";

  bool is_cluster() const { return cluster_ != nullptr; }
  directory::redis::RedisOnPort& server(size_t i) { return is_cluster() ? cluster_->server(i) : group_->server(i); }

  // The server that has the directory.
  size_t Master() {
    if (!is_cluster()) return group_->Master();
    for (size_t i = 0; i < Cluster::kServers; ++i) {
      if (!cluster_->server(i).started()) continue;
      if (const size_t owner = cluster_->OwnerOf(kKey, i); owner != Cluster::kServers) return owner;
    }
    return Cluster::kServers;
  }
  bool AwaitMasterOtherThan(size_t before) {
    return is_cluster() ? cluster_->AwaitOwnerOtherThan(kKey, before) : group_->AwaitMasterOtherThan(before);
  }
  // Another server could take the master's place.
  bool AwaitReplicas() {
    return is_cluster() ? server(Master()).Await({"INFO", "replication"}, "state=online") : group_->AwaitWhole();
  }
};

}  // namespace tokamak::daemon
