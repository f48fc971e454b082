// RedisMasters is the fixture of tests whose daemons have their directory behind Sentinels or in a
// Redis Cluster, and whose masters come and go.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/daemon/truth/three_daemons.h"
#include "tests/daemon/truth/witness.h"

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

  // A master that is replaced may have told its replica nothing of what it accepted last.
  struct Reign {
    int64_t accepted_until = 0;                   // what was put by then the next one has
    std::vector<uint64_t> re_announcements = {};  // of each node
  };
  Reign ThisReign() {
    Reign reign{Witness::Now() - kReplicationDelay};
    for (size_t node = 1; node < nodes_.size(); ++node) {
      Client client = Connect(static_cast<int>(node));
      reign.re_announcements.push_back(ReAnnouncements(client));
      if (!AllIsAnnounced(client)) reign.accepted_until = 0;  // a burst: it may have been put at any time
    }
    return reign;
  }
  // Awaits that the next master has learned all, and notes it in `witness`.
  void AwaitAllToldSince(const Reign& before, Witness& witness) {
    for (size_t node = 1; node < nodes_.size(); ++node) {
      Client client = Connect(static_cast<int>(node));
      EXPECT_TRUE(Eventually([&] {
        return ReAnnouncements(client) > before.re_announcements[node - 1] && Number(client, "directory_away") == 0 &&
               AllIsAnnounced(client);
      })) << "node "
          << node;
    }
    witness.DirectoryForgot(before.accepted_until, Witness::Now());
  }

 private:
  static constexpr int64_t kReplicationDelay = 1'000'000'000;  // ns: servers of one machine

  static uint64_t ReAnnouncements(Client& client) { return Number(client, "directory_re_announcements_total"); }
};

}  // namespace tokamak::daemon
