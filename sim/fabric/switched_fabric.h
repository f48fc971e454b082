// SwitchedFabric is a network of hosts, switches and cables in virtual time that software NICs plug
// into, built from a Topology.
//
// NICs may share its event loop, which saves events.
//
// Law: the same topology, seed and calls give the same frames at the same times.
// Law: each link, switch and interface accounts for its frames; when nothing is queued or on its
//      way, all buffers are empty.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/fabric.h"
#include "sim/fabric/host_interface.h"
#include "sim/fabric/link/environment.h"
#include "sim/fabric/link/frame_pool.h"
#include "sim/fabric/link/link.h"
#include "sim/fabric/link/observer.h"
#include "sim/fabric/switch/switch.h"
#include "sim/fabric/topology/address_book.h"
#include "sim/fabric/topology/topology.h"

namespace tokamak::sim {

struct FabricOptions {
  uint64_t seed = 1;  // of ways, marks and losses
  InterfaceOptions interfaces;
  base::Duration reroute_delay;  // between a cable's change and new routes
};

class SwitchedFabric final : public verbs::soft::Fabric {
 public:
  // `loop` and `observer`, which may be null, must outlive the fabric, and the fabric its ports.
  // kInvalidArgument: a mistake in the topology.
  static absl::StatusOr<std::unique_ptr<SwitchedFabric>> Build(base::EventLoop& loop, const Topology& topology,
                                                               const FabricOptions& options, Observer* observer);
  ~SwitchedFabric() override;

  // kNotFound: no host has this address. Port 0 is RoCE's 4791.
  absl::StatusOr<std::unique_ptr<verbs::soft::Port>> Open(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::soft::PortCallbacks callbacks) override;

  // Takes both directions.
  void SetCableUp(uint32_t cable, bool up);

  // Sets what the sender at this end of a cable (0 or 1) loses from now on. The options must be
  // valid.
  void SetLoss(uint32_t cable, uint32_t end, const LossOptions& options);

  const Topology& topology() const { return topology_; }
  Link& link(uint32_t cable, uint32_t end) { return *links_[cable][end]; }
  Switch& switch_at(uint32_t index) { return *switches_[index]; }
  HostInterface& interface_at(uint32_t number) { return *interfaces_[number]; }
  uint32_t links() const { return static_cast<uint32_t>(links_.size()); }
  uint32_t switches() const { return static_cast<uint32_t>(switches_.size()); }
  uint32_t interfaces() const { return static_cast<uint32_t>(interfaces_.size()); }

  // Frames queued, on a wire, or waiting for a NIC; and ever made.
  uint64_t frames_in_use() const { return frames_.in_use(); }
  uint64_t frames_made() const { return frames_.made(); }

 private:
  SwitchedFabric(base::EventLoop& loop, const Topology& topology, const FabricOptions& options, Observer* observer);
  absl::Status Assemble();
  void MakeLinks();
  void Reroute();

  const Topology topology_;
  const FabricOptions options_;
  const base::Random random_;
  FramePool frames_;
  Environment environment_;
  AddressBook addresses_;
  std::vector<std::array<std::unique_ptr<Link>, 2>> links_;  // by the end that sends
  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::unique_ptr<HostInterface>> interfaces_;
  std::vector<bool> up_;  // cables
  base::Timer reroute_;
};

}  // namespace tokamak::sim
