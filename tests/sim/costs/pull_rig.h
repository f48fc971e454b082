// Two hosts at one switch that pull objects from each other, with what that costs their processors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/transport/endpoint.h"
#include "lib/transport/memory/registration.h"
#include "lib/verbs/soft/device.h"
#include "sim/costs/costed_device.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/fabric/topology/generators.h"
#include "sim/time/sim_loop.h"

namespace tokamak::sim {

struct PullRigOptions {
  HostCosts costs;
  uint32_t mtu = 4096;
  GeneratorOptions network;
  bool on_demand = false;                          // registration; else the whole arena at the start
  uint64_t most = 1 << 20;                         // bytes of an object
  base::Duration pause = base::Milliseconds(100);  // after each
  transport::EndpointOptions endpoint;
};

class PullRig {
 public:
  explicit PullRig(const PullRigOptions& options) : options_(options), network_(scheduler_) {
    fabric_ = *SwitchedFabric::Build(network_, Star(options.network, 2), {}, nullptr);
    for (uint32_t i = 0; i < 2; ++i) hosts_[i] = std::make_unique<Host>(*this, i);
  }

  // From StartPull to Done; of the connection only where it is the first.
  base::Duration TimeOf(transport::Protocol protocol, uint64_t size) {
    Host& puller = *hosts_[0];
    transport::PullRequest request;
    request.id = base::ObjectId::FromName("object");
    request.owner = hosts_[1]->endpoint->address();
    request.size = hosts_[1]->source.object.size = {size, 0};
    hosts_[1]->source.object.address = hosts_[1]->arena();
    request.protocol = protocol;
    done_ = false;
    base::Time start;
    const base::Timer asks = puller.loop.Post([&] {
      start = puller.loop.Now();
      puller.endpoint->StartPull(request, std::make_unique<Sink>(*this, absl::MakeSpan(puller.arena(), size)));
    });
    EXPECT_TRUE(scheduler_.RunUntil([this] { return done_; }, scheduler_.Now() + base::Seconds(10)));
    scheduler_.RunFor(options_.pause);  // what comes after the end
    return done_at_ - start;
  }

  // The protocol of the last pull.
  transport::Protocol moved_by() const { return report_.protocol; }
  const transport::EndpointCounters& counters() const { return hosts_[0]->endpoint->counters(); }

  // Sets the bandwidth of both hosts, from now on.
  void SetCopyBandwidth(uint64_t bandwidth) {
    HostCosts costs = options_.costs;
    costs.copy_bandwidth = bandwidth;
    for (const auto& host : hosts_) host->loop.SetCopySpeed(CopySpeedOf(costs));
  }

  uint64_t packets_retransmitted() const {
    return hosts_[0]->nic->counters().queue_pairs.packets_retransmitted +
           hosts_[1]->nic->counters().queue_pairs.packets_retransmitted;
  }

 private:
  struct Source final : transport::Source {
    explicit Source(base::EventLoop& l) : loop(l) {}
    void Pin(const base::ObjectVersion&, transport::PinId, PinCallback done) override {
      answer = loop.Post([this, done = std::move(done)] { done(object); });
    }
    void Unpin(transport::PinId) override {}

    base::EventLoop& loop;
    transport::PinnedObject object;
    base::Timer answer;
  };

  class Sink final : public transport::Sink {
   public:
    Sink(PullRig& rig, absl::Span<uint8_t> memory) : rig_(rig), memory_(memory) {}
    absl::Span<uint8_t> memory() const override { return memory_; }
    void Done(const absl::Status& status, const transport::TransferReport& report) override {
      EXPECT_TRUE(status.ok()) << status;
      rig_.done_ = true;
      rig_.report_ = report;
      rig_.done_at_ = rig_.hosts_[0]->loop.Now();
    }

   private:
    PullRig& rig_;
    const absl::Span<uint8_t> memory_;
  };

  struct Host {
    Host(PullRig& rig, uint32_t number) : loop(rig.scheduler_), source(loop), memory(rig.options_.most) {
      loop.SetCopySpeed(CopySpeedOf(rig.options_.costs));
      verbs::soft::DeviceOptions options;
      options.name = absl::StrCat("soft:", number);
      options.address = *verbs::Address::Parse(absl::StrCat("10.0.0.", number + 1));
      options.max_mtu = rig.options_.mtu;
      options.seed = number + 1;
      options.congestion = verbs::soft::CongestionControl::kDcqcn;
      options.window_packets = 1024;
      options.batch_packets = 16;
      options.pause = base::Duration();
      auto opened = verbs::soft::OpenSoftDevice(rig.network_, *rig.fabric_, rig.trace_, options);
      CHECK(opened.ok()) << opened.status();
      nic = opened->get();
      device = WithCosts(*std::move(opened), rig.options_.costs, [&rig] { return rig.scheduler_.running(); });
      domain = *device->CreateProtectionDomain();
      registration = rig.options_.on_demand
                         ? transport::RegisterOnDemand(*device, *domain)
                         : *transport::RegisterArena(*device, *domain, absl::MakeSpan(arena(), rig.options_.most));
      transport::EndpointOptions endpoint_options = rig.options_.endpoint;
      endpoint_options.first_slots = endpoint_options.receive_slots;  // as those of a connection in use
      endpoint = *transport::Endpoint::Open(loop, *device, *domain, *registration, source, base::Random(number),
                                            rig.trace_, endpoint_options);
      verbs::Address service = options.address;
      service.port = 7000;
      CHECK(endpoint->Listen(service).ok());
    }

    uint8_t* arena() { return memory.data(); }

    SimLoop loop;
    Source source;
    std::vector<uint8_t> memory;
    verbs::soft::SoftDevice* nic = nullptr;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<transport::Registration> registration;
    std::unique_ptr<transport::Endpoint> endpoint;
  };

  const PullRigOptions options_;
  base::TraceHash trace_;
  Scheduler scheduler_;
  SimLoop network_;
  std::unique_ptr<SwitchedFabric> fabric_;
  std::unique_ptr<Host> hosts_[2];
  bool done_ = false;
  base::Time done_at_;
  transport::TransferReport report_;
};

}  // namespace tokamak::sim
