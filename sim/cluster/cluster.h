// Cluster is a whole cluster in virtual time: hosts (host.h) on one network. The first serves the
// directory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/phase_log.h"
#include "lib/base/trace.h"
#include "lib/directory/local.h"
#include "lib/node/node.h"
#include "sim/cluster/host.h"
#include "sim/costs/host_costs.h"
#include "sim/network/network.h"
#include "sim/network/sim_network.h"

namespace tokamak::sim {

struct ClusterOptions {
  uint64_t seed = 1;
  LinkOptions link;  // 100 Gb/s and 2 us unless set
  node::MembershipOptions membership;
  node::PeersOptions peers;
  node::PullOptions pulls;
  transport::EndpointOptions endpoint;
  base::Duration directory_recovery = base::Seconds(10);
  size_t directory_waiting = directory::LocalOptions().waiting;
  size_t directory_tombstones = directory::LocalOptions().tombstones;
  size_t max_engine_calls = node::kMaxEngineCalls;
  std::function<void(const std::string&)> on_wrong;  // Reports breaches (wrong bytes, a second
                                                     // answer, a pin left); null: one ends the
                                                     // program.
  NetworkMaker network = MakeSimNetwork;
  uint32_t most_hosts = NetworkOptions().hosts;
  std::optional<HostCosts> costs;      // of every host; null: only copies take processor time
  std::string registration = "arena";  // or on_demand, cached (lib/transport/memory/registration.h)

  ClusterOptions() {
    link.picoseconds_per_byte = 80;
    pulls.short_way = 64 << 10;  // small objects, some for bulk engines
  }
};

class Cluster final {
 public:
  explicit Cluster(const ClusterOptions& options = {});
  ~Cluster();

  Host& Add(const HostOptions& options = {});
  Host& operator[](size_t i) { return *hosts_[i]; }
  size_t size() const { return hosts_.size(); }

  // A power loss, without goodbye. Restart: a later life, with an empty store, perhaps another
  // address.
  void Crash(size_t i);
  void Restart(size_t i, const std::string& ip = "");
  bool alive(size_t i) const { return hosts_[i] != nullptr; }

  bool RunUntil(const std::function<bool()>& done, base::Duration limit = base::Seconds(120));
  void RunFor(base::Duration duration) { time.RunFor(duration); }

  // Runs until all are in the directory, with their objects.
  void Settle();

  // Gives the pins back.
  absl::Status Get(Host& host, const std::string& name, node::GetOptions options = {});
  // In order.
  std::vector<absl::Status> GetAll(Host& host, const std::vector<std::string>& names, node::GetOptions options = {});
  void Await(const std::shared_ptr<Got>& got, base::Duration limit = base::Seconds(120));

  absl::StatusOr<uint32_t> Delete(Host& host, const std::string& name);

  // Checks that nothing is under way (pins, pulls, lost objects) and every store is consistent.
  void ExpectClean();

  void Wrong(const std::string& what) const;

  // Returns 10.0.0.1 and up.
  static std::string IpOf(uint32_t i);

  static constexpr size_t kMostPhases = 1 << 16;

  const ClusterOptions options;
  base::TraceHash hash;
  base::PhaseLog phases{kMostPhases};
  base::BothTraces trace{hash, phases};

 private:
  const std::unique_ptr<Network> own_network_;

 public:
  Network& network;
  VirtualTime& time;

 private:
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<HostOptions> host_options_;
  std::vector<uint64_t> incarnations_;
};

}  // namespace tokamak::sim
