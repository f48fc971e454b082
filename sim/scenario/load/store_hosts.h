// StoreHosts are the nodes of a scenario, one on each host: they put and get its objects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/verbs.h"
#include "sim/scenario/load/store_host.h"
#include "sim/scenario/scenario.h"
#include "sim/time/virtual_time.h"

namespace tokamak::sim {

class StoreHosts final {
 public:
  using Devices = std::function<verbs::Device&(uint32_t interface)>;

  // Arguments must outlive it. `loop`: the network's. Errors: those of StoreHost::Open.
  static absl::StatusOr<std::unique_ptr<StoreHosts>> Open(VirtualTime& time, base::EventLoop& loop,
                                                          const Scenario& scenario, const Devices& devices);

  // Has all join, put what exists before, and connect by Scenario::store; `ready` runs when the
  // directory knows all.
  void Prepare(base::Task ready);

  // `done` runs in a later task.
  void Begin(const Transfer& transfer, StoreHost::Done done);

  bool payload_is_right() const;

 private:
  StoreHosts(base::EventLoop& loop, const Scenario& scenario) : loop_(loop), scenario_(scenario) {}
  struct Peer {
    uint32_t host = 0;
    bool bulk = false;
  };

  void AwaitAll(base::Duration pause, base::Task then);
  void PutFirst(base::Task ready);
  void Connect();
  void ConnectNext(uint32_t host);
  StoreHost& HostAt(uint32_t interface) { return *hosts_[host_of_[interface]]; }
  static std::string NameOf(uint32_t object) { return "object" + std::to_string(object); }

  base::EventLoop& loop_;
  const Scenario& scenario_;
  std::vector<std::unique_ptr<StoreHost>> hosts_;
  std::vector<uint32_t> host_of_;         // by interface
  uint32_t underway_ = 0;                 // puts and gets before the scenario's time
  std::vector<std::vector<Peer>> peers_;  // by host; the next one last
  base::Timer look_;
};

}  // namespace tokamak::sim
