// A cluster in virtual time: whole nodes (store, engines over software NICs, node) on one network. The first serves the directory.
//
// An object's bytes follow from its name and sizes, so that every get can be judged.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/directory/local.h"
#include "lib/directory/remote/remote.h"
#include "lib/directory/remote/server.h"
#include "lib/node/engine.h"
#include "lib/node/node.h"
#include "lib/store/store.h"
#include "lib/transport/registration.h"
#include "lib/verbs/soft/device.h"
#include "sim/sim_fabric.h"
#include "sim/sim_loop.h"

namespace tokamak::node {

struct MachineOptions {
  uint64_t memory = 8 << 20;
  bool cache = false;
  uint32_t engines = 1;  // 0: one, on the control loop
};

struct ClusterOptions {
  uint64_t seed = 1;
  sim::LinkOptions link;  // 100 Gb/s and 2 us unless set
  MembershipOptions membership;
  PeersOptions peers;
  PullOptions pulls;
  transport::EndpointOptions endpoint;

  ClusterOptions() { link.picoseconds_per_byte = 80; }
};

class Cluster;

// A get of a program: what it was answered, with its pins.
struct Got {
  bool done = false;
  base::Time done_at;
  std::vector<GetResult> results;
  std::unique_ptr<store::Handle> handle;
};

class Machine {
 public:
  Machine(Cluster& cluster, uint32_t index, const MachineOptions& options, uint64_t incarnation,
          const std::string& ip = "");
  ~Machine();

  // A program of this machine.
  absl::Status Create(const std::string& object, uint64_t data_size, uint64_t metadata_size = 0);
  absl::Status Seal(const std::string& object);
  absl::Status Put(const std::string& object, uint64_t data_size, uint64_t metadata_size = 0);
  std::shared_ptr<Got> StartGet(const std::vector<std::string>& objects, const GetOptions& options);
  void Release(const std::string& object);
  void Release(const Got& got);
  bool Has(const std::string& object) const { return store->Contains(base::ObjectId::FromName(object)); }

  // The right bytes are at `location`.
  bool IsRight(const base::ObjectId& id, const store::Location& location) const;

  // Sums over engines.
  uint64_t transfers_pulled(transport::Protocol protocol) const;
  uint64_t transfers_served() const;

  // The program ends: peers see its connections close.
  void EndEngines() { engines_.clear_hosts(); }
  EngineLink& link(size_t i = 0) { return engines_.all[i]->link; }

  // From now on its processors stand still, for so long each. What arrives or becomes due meanwhile waits.
  struct Freezes {
    base::Duration control, engines, device;
  };
  void Freeze(const Freezes& freezes);

  Cluster& cluster;
  const uint32_t index;
  const MachineOptions options;
  const std::string name;
  sim::SimLoop loop;
  verbs::Address address;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<directory::LocalDirectory> served;  // of the first machine
  std::unique_ptr<Node> node;
  store::Owner me{};

 private:
  struct Engine {
    explicit Engine(base::EventLoop& control) : loop(&control), link(control) {}
    std::unique_ptr<sim::SimLoop> own_loop;  // null: it shares the control loop
    base::EventLoop* loop;
    EngineLink link;
    std::unique_ptr<EngineHost> host;
  };
  struct Engines {
    std::vector<std::unique_ptr<Engine>> all;
    void clear_hosts() {
      for (auto& engine : all) engine->host.reset();
    }
  };
  struct alignas(64) Block {
    uint8_t bytes[64];
  };

  void OpenDevice(uint64_t incarnation);
  void OpenEngines(uint64_t incarnation);
  void OpenDirectory();

  sim::SimLoop nic_loop_;
  const std::unique_ptr<Block[]> memory_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<transport::Registration> registration_;
  Engines engines_;
  std::unique_ptr<directory::DirectoryServer> server_;
  std::unique_ptr<ServiceCaller> directory_caller_;
  std::unique_ptr<directory::RemoteDirectory> remote_;
  std::vector<base::Timer> freezes_;  // until they begin
};

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options = {});
  ~Cluster();

  Machine& Add(const MachineOptions& options = {});
  Machine& operator[](size_t i) { return *machines_[i]; }
  size_t size() const { return machines_.size(); }

  // The machine loses its power: nobody is told. Restart gives it a later life, with an empty store, perhaps at another address.
  void Crash(size_t i);
  void Restart(size_t i, const std::string& ip = "");
  bool alive(size_t i) const { return machines_[i] != nullptr; }

  bool RunUntil(const std::function<bool()>& done, base::Duration limit = base::Seconds(120));
  void RunFor(base::Duration duration) { scheduler.RunUntil(scheduler.Now() + duration); }

  // All nodes are in the directory, and it knows what they have.
  void Settle();

  // Gets that are waited for; the pins are given back. Results are judged: what came has the right bytes.
  absl::Status Get(Machine& machine, const std::string& name, GetOptions options = {});
  // The statuses of many, in their order.
  std::vector<absl::Status> GetAll(Machine& machine, const std::vector<std::string>& names, GetOptions options = {});
  void Await(const std::shared_ptr<Got>& got, base::Duration limit = base::Seconds(120));

  absl::StatusOr<DeleteResult> Delete(Machine& machine, const std::string& name);

  // Nothing is under way any more: no pins, no pulls, no lost objects, and every store is consistent.
  void ExpectClean();

  const ClusterOptions options;
  sim::Scheduler scheduler;
  base::TraceHash trace;
  sim::SimLoop wire_loop;
  sim::SimFabric fabric;

 private:
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<MachineOptions> machine_options_;
  std::vector<uint64_t> incarnations_;
};

}  // namespace tokamak::node
