// SPDX-License-Identifier: GPL-2.0-only
//
// The suite on ns-3: three hosts and a switch with PFC and ECN, a software NIC at each host, and
// ns-3's scheduler for everybody; clean, with DCQCN, and losing packets.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/time.h"
#include "ns3/boolean.h"
#include "ns3/channel.h"
#include "ns3/double.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"
#include "sim/ns3/ns3_loop.h"
#include "sim/ns3/roce_helper.h"
#include "sim/ns3/roce_net_device.h"
#include "tests/verbs/conformance/backends/virtual_backend.h"

namespace tokamak::verbs::conformance {
namespace {

constexpr uint32_t kDevices = 3;

struct Network {
  std::string congestion = "Additive";
  double loss = 0;
  double corrupt = 0;
};

class Ns3Backend final : public VirtualBackend {
 public:
  explicit Ns3Backend(const Network& network) {
    sim::PrepareSimulator();
    helper_ = std::make_unique<sim::RoceHelper>();
    helper_->SetSwitchAttribute("EcnMinimum", ns3::UintegerValue(50'000));
    helper_->SetSwitchAttribute("EcnMaximum", ns3::UintegerValue(200'000));
    helper_->SetChannelAttribute("LossRate", ns3::DoubleValue(network.loss));
    helper_->SetChannelAttribute("CorruptRate", ns3::DoubleValue(network.corrupt));
    helper_->SetNicAttribute("Congestion", ns3::StringValue(network.congestion));
    ns3::NodeContainer hosts(kDevices);
    ns3::NodeContainer switches(1);
    helper_->InstallSwitch(switches);
    ports_ = helper_->Install(hosts, switches.Get(0));
    for (uint32_t i = 0; i < kDevices; ++i) {
      nics_.push_back(helper_->InstallNic(ports_.Get(i)));
      owner_loops_.push_back(std::make_unique<sim::Ns3Loop>());
    }
  }

  ~Ns3Backend() override {
    nics_.clear();
    ports_ = ns3::NetDeviceContainer();
    helper_.reset();
    ns3::Simulator::Destroy();
  }

  size_t device_count() const override { return kDevices; }
  Device& device(size_t index) override { return nics_[index]->device(); }
  base::EventLoop& loop(size_t index) override { return *owner_loops_[index]; }

  bool Drive(const std::function<bool()>& done, base::Duration limit) override {
    return sim::Ns3Loop::RunUntil(done, owner_loops_[0]->Now() + limit) || done();
  }

  Address nowhere() const override { return *Address::Parse("10.0.0.200"); }

  bool Vanish(size_t index) override {
    ports_.Get(static_cast<uint32_t>(index))->GetChannel()->SetAttribute("Up", ns3::BooleanValue(false));
    return true;
  }

 private:
  std::unique_ptr<sim::RoceHelper> helper_;
  ns3::NetDeviceContainer ports_;
  std::vector<std::unique_ptr<sim::Ns3Loop>> owner_loops_;
  std::vector<ns3::Ptr<sim::RoceNic>> nics_;
};

Profile Make(std::string name, const Network& network) {
  Profile profile;
  profile.name = std::move(name);
  profile.lossy = network.loss > 0;
  profile.make = [network]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    return std::make_unique<Ns3Backend>(network);
  };
  return profile;
}

}  // namespace

std::vector<Profile> Profiles() {
  Network dcqcn;
  dcqcn.congestion = "Dcqcn";
  Network lossy;
  lossy.loss = 0.01;
  lossy.corrupt = 0.005;
  return {Make("clean", {}), Make("dcqcn", dcqcn), Make("lossy", lossy)};
}

}  // namespace tokamak::verbs::conformance
