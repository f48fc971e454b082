// Host is one machine of a simulated cluster: a node (lib/node/machine.h) on virtual-time loops,
// with a software NIC on the cluster's network, and a program that puts and gets.
//
// An object's bytes follow from its id and generation, so that every get can be judged, whoever
// reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/handle.h"
#include "lib/directory/local.h"
#include "lib/node/machine.h"
#include "lib/transport/registration.h"
#include "lib/verbs/verbs.h"
#include "sim/sim_loop.h"

namespace tokamak::sim {

class Cluster;

struct HostOptions {
  uint64_t memory = 8 << 20;
  bool cache = false;    // may evict what was created on it
  uint32_t engines = 1;  // 0: one, on the control loop
};

// A get of a program: what it was answered, with its pins.
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

  absl::Status Create(const std::string& object, uint64_t data_size, uint64_t metadata_size = 0);
  absl::Status Seal(const std::string& object);
  absl::Status Put(const std::string& object, uint64_t data_size, uint64_t metadata_size = 0);
  std::shared_ptr<Got> StartGet(const std::vector<std::string>& objects, const node::GetOptions& options);
  void Release(const std::string& object);
  void Release(const Got& got);
  bool Has(const std::string& object) const { return store().Contains(base::ObjectId::FromName(object)); }

  // The bytes at `location` are those of that content.
  bool IsRight(const base::ObjectId& id, const store::Location& location) const;

  // ---- the machine

  store::Store& store() const { return machine_->store(); }
  node::Node& node() const { return machine_->node(); }
  node::EngineLink& link(size_t i = 0) { return machine_->link(i); }
  // The directory that it serves to all; nullptr but on the first.
  directory::LocalDirectory* served() const { return served_; }

  // Sums over engines.
  uint64_t transfers_pulled(transport::Protocol protocol) const;
  uint64_t transfers_served() const;

  // The program ends: peers see its connections close.
  void EndEngines() { machine_->StopEngines(); }

  // From now on its processors stand still, each for this long. What arrives or becomes due
  // meanwhile waits.
  struct Freezes {
    base::Duration control, engines, device;
  };
  void Freeze(const Freezes& freezes);

  Cluster& cluster;
  const uint32_t index;
  const HostOptions options;
  const std::string name;
  SimLoop loop;
  const verbs::Address address;
  store::Owner me{};

 private:
  struct alignas(64) Block {
    uint8_t bytes[64];
  };

  absl::Span<uint8_t> arena() const { return absl::MakeSpan(memory_[0].bytes, options.memory); }
  void OpenDevice(uint64_t incarnation);
  std::unique_ptr<node::DirectoryHost> OpenDirectory(node::EngineLink& link, base::Random random);

  SimLoop nic_loop_;
  std::vector<SimLoop*> engine_loops_;
  const std::unique_ptr<Block[]> memory_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<transport::Registration> registration_;
  directory::LocalDirectory* served_ = nullptr;
  std::unique_ptr<node::Machine> machine_;
  std::vector<base::Timer> freezes_;  // until they begin
};

}  // namespace tokamak::sim
