// Two hosts with software NICs on a simulated network, and the connections between them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/fabric.h"
#include "sim/network/sim_fabric.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs::soft {

constexpr uint16_t kPort = 7000;
constexpr Access kAccess = kLocalWrite | kRemoteWrite | kRemoteRead;

// A fabric that loses what `lose` says, and else is the one below.
class FilterFabric final : public Fabric {
 public:
  explicit FilterFabric(Fabric& below) : below_(below) {}

  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override {
    auto port = below_.Open(loop, address, std::move(callbacks));
    if (!port.ok()) return port.status();
    return std::make_unique<FilterPort>(*this, *std::move(port));
  }

  std::function<bool(const Packet&)> lose;

 private:
  class FilterPort final : public Port {
   public:
    FilterPort(FilterFabric& fabric, std::unique_ptr<Port> port) : fabric_(fabric), port_(std::move(port)) {}
    size_t Send(absl::Span<const Packet> packets) override {
      for (size_t i = 0; i < packets.size(); ++i) {
        if (fabric_.lose && fabric_.lose(packets[i])) continue;
        if (port_->Send(packets.subspan(i, 1)) == 0) return i;
      }
      return packets.size();
    }
    const Address& address() const override { return port_->address(); }
    uint32_t max_mtu() const override { return port_->max_mtu(); }
    uint64_t receive_window() const override { return port_->receive_window(); }

   private:
    FilterFabric& fabric_;
    const std::unique_ptr<Port> port_;
  };

  Fabric& below_;
};

// A host: its processor, its NIC, and one completion queue for all its queue pairs.
struct Host {
  Host(sim::Scheduler& scheduler, Fabric& fabric, base::Trace& trace, uint8_t last, uint32_t max_mtu)
      : nic_loop(scheduler), loop(scheduler), memory(1 << 20) {
    DeviceOptions options;
    options.address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
    options.seed = last;
    options.max_mtu = max_mtu;
    device = *OpenSoftDevice(nic_loop, fabric, trace, options);
    domain = *device->CreateProtectionDomain();
    completions = *device->CreateCompletionQueue(loop, 4096, [] {});
    region = *domain->RegisterMemory(absl::MakeSpan(memory), kAccess);
  }

  Address Service() const {
    Address address = device->address();
    address.port = kPort;
    return address;
  }

  std::vector<Completion> Poll() {
    std::vector<Completion> all(4096);
    all.resize(completions->Poll(absl::MakeSpan(all)));
    return all;
  }

  sim::SimLoop nic_loop;
  sim::SimLoop loop;
  std::vector<uint8_t> memory;
  std::unique_ptr<SoftDevice> device;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<MemoryRegion> region;
};

// One side of a connection.
struct HostEnd {
  explicit HostEnd(Host& on) : host(on) {
    QueuePairOptions options;
    options.send_queue = options.receive_queue = on.completions.get();
    options.remote_access = kAccess;
    queue_pair = *on.domain->CreateQueuePair(options);
  }

  ConnectionHandler Handler() {
    return [this](const ConnectionEvent& event) {
      EXPECT_TRUE(connection != nullptr);
      events.push_back(event.kind);
      status = event.status;
      path_mtu = event.path_mtu;
    };
  }
  absl::Status Connect(const Address& address, const ConnectOptions& options = {}) {
    auto made = host.device->connection_manager().Connect(*queue_pair, address, options, Handler());
    if (made.ok()) connection = *std::move(made);
    return made.status();
  }
  absl::Status Accept(ConnectionRequest& request, const ConnectOptions& options = {}) {
    auto made = request.Accept(*queue_pair, options, Handler());
    if (made.ok()) connection = *std::move(made);
    return made.status();
  }

  PostResult Post(Opcode opcode, uint32_t length, const HostEnd& peer) {
    const Sge sge{host.region->address(), length, host.region->lkey()};
    SendRequest request;
    request.opcode = opcode;
    request.flags = kSignaled;
    request.sges = absl::MakeConstSpan(&sge, 1);
    request.remote_address = reinterpret_cast<uint64_t>(peer.host.region->address());
    request.rkey = peer.host.region->rkey();
    return queue_pair->PostSend(absl::MakeConstSpan(&request, 1));
  }

  bool up() const { return queue_pair->state() == QueuePairState::kReadyToSend; }
  bool ended() const { return !events.empty() && events.back() != ConnectionEvent::Kind::kEstablished; }

  Host& host;
  std::unique_ptr<QueuePair> queue_pair;
  std::unique_ptr<Connection> connection;
  std::vector<ConnectionEvent::Kind> events;
  absl::Status status;
  uint32_t path_mtu = 0;
};

// Two hosts; whoever asks is accepted where Serve was called.
class ConnectedHosts : public testing::Test {
 protected:
  ConnectedHosts() : ConnectedHosts(1, sim::LinkOptions()) {}
  ConnectedHosts(uint64_t seed, const sim::LinkOptions& link)
      : wire_loop_(scheduler_), network_(wire_loop_, seed, Options(link), trace_), fabric_(network_) {
    a_ = std::make_unique<Host>(scheduler_, fabric_, trace_, 1, kMaxMtu);
    b_ = std::make_unique<Host>(scheduler_, fabric_, trace_, 2, kMaxMtu);
  }

  static sim::SimFabricOptions Options(const sim::LinkOptions& link) {
    sim::SimFabricOptions options;
    options.link = link;
    return options;
  }

  // Accepts whoever asks, on `host`.
  std::unique_ptr<Listener> Serve(Host& host) {
    return *host.device->connection_manager().Listen(host.loop, host.Service(),
                                                     [this, &host](std::unique_ptr<ConnectionRequest> request) {
                                                       served_.push_back(std::make_unique<HostEnd>(host));
                                                       if (!served_.back()->Accept(*request).ok()) served_.pop_back();
                                                     });
  }

  void Run(base::Duration duration) { scheduler_.RunFor(duration); }

  // A connection from a_ to b_.
  void Establish(HostEnd& active) {
    auto listener = Serve(*b_);
    ASSERT_TRUE(active.Connect(b_->Service()).ok());
    Run(base::Milliseconds(10));
    ASSERT_THAT(active.events, testing::ElementsAre(ConnectionEvent::Kind::kEstablished));
    ASSERT_THAT(served_.back()->events, testing::ElementsAre(ConnectionEvent::Kind::kEstablished));
  }

  sim::Scheduler scheduler_;
  base::TraceHash trace_;
  sim::SimLoop wire_loop_;
  sim::SimFabric network_;
  FilterFabric fabric_;
  std::unique_ptr<Host> a_;
  std::unique_ptr<Host> b_;
  std::vector<std::unique_ptr<HostEnd>> served_;
};

}  // namespace tokamak::verbs::soft
