// Host is one machine of a simulated cluster: a node (simulated_node.h), its software NIC, and a
// program that puts and gets.
//
// Bytes follow from id and generation: any node can judge a get.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/handle.h"
#include "lib/base/text/object_name.h"
#include "lib/directory/local.h"
#include "lib/node/machine.h"
#include "lib/transport/memory/registration.h"
#include "lib/verbs/verbs.h"
#include "sim/cluster/simulated_node.h"

namespace tokamak::sim {

class Cluster;

struct HostOptions {
  uint64_t memory = 8 << 20;
  bool cache = false;    // objects created on it may be evicted
  uint32_t engines = 1;  // for bulk; 0: the control loop's moves all
};

struct Got {
  bool done = false;
  base::Time done_at;
  std::vector<node::GetResult> results;
  base::Pending handle;
};

class Host final {
 public:
  Host(Cluster& cluster, uint32_t index, const HostOptions& options, uint64_t incarnation, const std::string& ip);
  ~Host();

  // ---- a program of this machine

  absl::Status Create(const std::string& object, uint64_t data_size, uint64_t metadata_size = 0,
                      const base::ObjectName& kept = {});
  absl::Status Seal(const std::string& object);
  absl::Status Put(const std::string& object, uint64_t data_size, uint64_t metadata_size = 0,
                   const base::ObjectName& kept = {});
  std::shared_ptr<Got> StartGet(const std::vector<std::string>& objects, const node::GetOptions& options);
  void Release(const std::string& object);
  void Release(const Got& got);
  bool Has(const std::string& object) const { return store().Contains(base::ObjectId::FromName(object)); }

  bool IsRight(const base::ObjectId& id, const store::Location& location) const;

  // ---- the machine

  store::Store& store() const { return machine().store(); }
  node::Node& node() const { return machine().node(); }
  node::Engine& engine(size_t i = 0) { return machine().engine(i); }
  // Returns the directory that it serves to all; nullptr except on the first host.
  directory::LocalDirectory* served() const { return node_->served(); }

  // Over all engines.
  uint64_t transfers_pulled(transport::Protocol protocol) const;
  uint64_t transfers_served() const;

  // Peers see its connections close.
  void EndEngines() { machine().StopEngines(); }

  // Ends as a daemon with --evacuate: `evacuated` runs when all is handed over, `drained` when
  // nobody needs the machine. Programs may go on.
  [[nodiscard]] base::Pending Leave(base::Duration limit, node::Evacuation::Callback evacuated,
                                    std::function<void()> drained);

  // Stops its processors now, each for this long; arrivals and due timers wait.
  struct Freezes {
    base::Duration control, engines, device;
  };
  void Freeze(const Freezes& freezes);

  Cluster& cluster;
  const uint32_t index;
  const HostOptions options;
  const std::string name;

 private:
  const std::unique_ptr<base::EventLoop> own_loop_;

 public:
  base::EventLoop& loop;
  const verbs::Address address;
  store::Owner me{};

 private:
  struct alignas(64) Block {
    uint8_t bytes[64];
  };

  absl::Span<uint8_t> arena() const { return absl::MakeSpan(memory_[0].bytes, options.memory); }
  void OpenDevice(uint64_t incarnation);
  void RegisterMemory();
  SimulatedNodeOptions NodeOptions(uint64_t incarnation) const;
  node::Machine& machine() const { return node_->machine(); }

  const std::unique_ptr<base::EventLoop> nic_loop_;
  const std::unique_ptr<Block[]> memory_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<transport::Registration> registration_;
  std::unique_ptr<SimulatedNode> node_;
  std::vector<base::Timer> freezes_;
};

}  // namespace tokamak::sim
