// Software NICs at the hosts of a topology, and requests between them whose ends are noted.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/verbs.h"
#include "sim/fabric/hash_observer.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/fabric/topology/topology.h"
#include "sim/time/sim_loop.h"

namespace tokamak::sim {

inline verbs::soft::DeviceOptions FixedWindow(uint32_t packets) {
  verbs::soft::DeviceOptions options;
  options.congestion = verbs::soft::CongestionControl::kFixed;
  options.window_packets = packets;
  return options;
}

struct RigOptions {
  FabricOptions fabric;
  verbs::soft::DeviceOptions nic = FixedWindow(1024);
  bool own_loops = false;  // each NIC on a loop of its own, else all on the network's
  size_t memory = 1 << 20;
  bool phantom = false;  // memory whose bytes do not matter and do not travel
};

class NicRig {
 public:
  struct Completed {
    uint64_t id;
    verbs::CompletionStatus status;
    base::Time time;
  };

  struct Nic {
    explicit Nic(Scheduler& scheduler) : nic_loop(scheduler), loop(scheduler) {}
    SimLoop nic_loop;
    SimLoop loop;
    std::unique_ptr<verbs::soft::SoftDevice> device;
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<verbs::CompletionQueue> completions;
    std::unique_ptr<verbs::MemoryRegion> region;
    std::vector<std::unique_ptr<verbs::QueuePair>> queue_pairs;
  };

  struct Flow {
    Nic* from;
    Nic* to;
    verbs::QueuePair* queue_pair;
  };

  explicit NicRig(const Topology& topology, const RigOptions& options = {})
      : options_(options), memory_(2 * options.memory), network_(scheduler_), hash_(network_) {
    for (size_t i = 0; i < options.memory; ++i) memory_[i] = static_cast<uint8_t>(i * 7 + (i >> 9));
    auto fabric = SwitchedFabric::Build(network_, topology, options.fabric, &hash_);
    CHECK(fabric.ok()) << fabric.status();
    fabric_ = *std::move(fabric);
    for (uint32_t i = 0; i < fabric_->interfaces(); ++i) OpenNic(i);
  }

  // All from the same memory, and to the same.
  Flow Connect(uint32_t from, uint32_t to, uint32_t mtu = 4096, const verbs::ReliabilityOptions& reliability = {}) {
    Nic& a = nics_[from];
    Nic& b = nics_[to];
    verbs::QueuePair* x = MakeQueuePair(a);
    verbs::QueuePair* y = MakeQueuePair(b);
    Walk(x, b, y, mtu, reliability, 100, 200);
    Walk(y, a, x, mtu, reliability, 200, 100);
    return {&a, &b, x};
  }

  void Post(const Flow& flow, verbs::Opcode opcode, uint32_t bytes, uint64_t id = 0) {
    const verbs::Sge sge{flow.from->region->address() + (opcode == verbs::Opcode::kRead ? options_.memory : 0), bytes,
                         flow.from->region->lkey()};
    verbs::SendRequest request;
    request.id = id;
    request.opcode = opcode;
    request.flags = verbs::kSignaled;
    request.sges = absl::MakeConstSpan(&sge, 1);
    request.remote_address =
        reinterpret_cast<uint64_t>(flow.to->region->address()) + (opcode == verbs::Opcode::kRead ? 0 : options_.memory);
    request.rkey = flow.to->region->rkey();
    const verbs::PostResult result = flow.queue_pair->PostSend(absl::MakeConstSpan(&request, 1));
    ASSERT_TRUE(result.ok()) << result.status;
  }

  // Until this many requests have completed, all well.
  void RunUntilCompleted(size_t count, base::Duration limit = base::Seconds(1)) {
    EXPECT_TRUE(scheduler_.RunUntil([this, count] { return completed_.size() >= count; }, scheduler_.Now() + limit))
        << completed_.size() << " of " << count << " completed";
    for (const Completed& one : completed_) EXPECT_EQ(one.status, verbs::CompletionStatus::kSuccess) << one.id;
  }

  // How long one request takes by itself.
  base::Duration TimeOf(const Flow& flow, verbs::Opcode opcode, uint32_t bytes) {
    completed_.clear();
    const base::Time start = scheduler_.Now();
    Post(flow, opcode, bytes);
    RunUntilCompleted(1);
    return completed_.empty() ? base::Duration() : completed_[0].time - start;
  }

  bool arrived(size_t bytes) const {
    return std::equal(memory_.begin(), memory_.begin() + static_cast<ptrdiff_t>(bytes),
                      memory_.begin() + static_cast<ptrdiff_t>(options_.memory));
  }

  // Lets everything come to rest, then: nothing has disappeared, and nothing is left anywhere.
  void ExpectAllAccountedFor() {
    scheduler_.RunFor(base::Seconds(1));
    EXPECT_EQ(fabric_->frames_in_use(), 0u);
    for (uint32_t i = 0; i < fabric_->links(); ++i) {
      for (uint32_t end = 0; end < 2; ++end) {
        const Link& link = fabric_->link(i, end);
        const LinkCounters& c = link.counters();
        EXPECT_EQ(c.sent, c.delivered + c.lost + c.dropped_down + link.in_flight()) << "cable " << i << " end " << end;
        EXPECT_EQ(link.in_flight(), 0u);
      }
    }
    for (uint32_t i = 0; i < fabric_->switches(); ++i) {
      Switch& one = fabric_->switch_at(i);
      uint64_t received = 0, sent = 0, dropped = 0;
      for (uint32_t port = 0; port < one.ports(); ++port) {
        for (const PriorityCounters& c : one.counters(port).priorities) {
          received += c.received;
          sent += c.sent;
          dropped += c.dropped;
        }
      }
      EXPECT_EQ(received, sent + dropped) << "switch " << i;
      EXPECT_EQ(one.queued(), 0u);
      EXPECT_EQ(one.buffer().used(), 0u);
      EXPECT_EQ(one.buffer().shared_used(), 0u);
    }
    for (uint32_t i = 0; i < fabric_->interfaces(); ++i) {
      HostInterface& one = fabric_->interface_at(i);
      uint64_t received = 0, dropped = 0;
      for (const PriorityCounters& c : one.counters().priorities) {
        received += c.received;
        dropped += c.dropped;
      }
      EXPECT_EQ(received, one.delivered() + dropped + one.waiting()) << "interface " << i;
    }
  }

  // Frames dropped by all switches together.
  uint64_t Dropped() {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < fabric_->switches(); ++i) {
      for (uint32_t port = 0; port < fabric_->switch_at(i).ports(); ++port) {
        for (uint64_t drops : fabric_->switch_at(i).counters(port).drops) sum += drops;
      }
    }
    return sum;
  }
  uint64_t Pauses() {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < fabric_->switches(); ++i) {
      for (uint32_t port = 0; port < fabric_->switch_at(i).ports(); ++port) {
        for (const PriorityCounters& c : fabric_->switch_at(i).counters(port).priorities) sum += c.pauses_sent;
      }
    }
    return sum;
  }
  verbs::soft::QueuePairCounters Counters() const {
    verbs::soft::QueuePairCounters sum;
    for (const Nic& nic : nics_) sum.Add(nic.device->counters().queue_pairs);
    return sum;
  }

  Scheduler& scheduler() { return scheduler_; }
  SwitchedFabric& fabric() { return *fabric_; }
  Nic& nic(uint32_t i) { return nics_[i]; }
  std::vector<Completed>& completed() { return completed_; }
  uint64_t hash() const { return hash_.hash(); }
  uint64_t hashed_events() const { return hash_.events(); }

 private:
  void OpenNic(uint32_t number) {
    Nic& nic = nics_.emplace_back(scheduler_);
    verbs::soft::DeviceOptions options = options_.nic;
    options.address = AddressOf(number);
    options.seed = number + 1;
    base::EventLoop& loop = options_.own_loops ? nic.nic_loop : network_;
    auto device = verbs::soft::OpenSoftDevice(loop, *fabric_, no_trace_, options);
    CHECK(device.ok()) << device.status();
    nic.device = *std::move(device);
    nic.domain = *nic.device->CreateProtectionDomain();
    nic.completions = *nic.device->CreateCompletionQueue(nic.loop, 64, [this, &nic] { Poll(nic); });
    nic.completions->RequestNotify(false);
    nic.region = *nic.domain->RegisterMemory(absl::MakeSpan(memory_),
                                             verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead |
                                                 (options_.phantom ? verbs::kPhantom : verbs::kLocalRead));
  }

  verbs::Address AddressOf(uint32_t number) const {
    for (const Topology::Host& host : fabric_->topology().hosts) {
      if (number < host.addresses.size()) return host.addresses[number];
      number -= static_cast<uint32_t>(host.addresses.size());
    }
    CHECK(false) << "no such interface";
    return {};
  }

  void Poll(Nic& nic) {
    verbs::Completion some[16];
    nic.completions->RequestNotify(false);
    while (const size_t got = nic.completions->Poll(absl::MakeSpan(some))) {
      for (size_t i = 0; i < got; ++i) completed_.push_back({some[i].id, some[i].status, scheduler_.Now()});
    }
  }

  static verbs::QueuePair* MakeQueuePair(Nic& nic) {
    verbs::QueuePairOptions options;
    options.send_queue = options.receive_queue = nic.completions.get();
    options.max_send_requests = 16;
    options.max_receive_requests = 16;
    options.remote_access = verbs::kRemoteWrite | verbs::kRemoteRead;
    nic.queue_pairs.push_back(*nic.domain->CreateQueuePair(options));
    return nic.queue_pairs.back().get();
  }

  static void Walk(verbs::QueuePair* queue_pair, const Nic& peer, const verbs::QueuePair* other, uint32_t mtu,
                   const verbs::ReliabilityOptions& reliability, uint32_t send, uint32_t receive) {
    verbs::QueuePairAttributes attributes;
    attributes.peer = peer.device->address();
    attributes.peer_number = other->number();
    attributes.path_mtu = mtu;
    attributes.reliability = reliability;
    attributes.send_psn = send;
    attributes.receive_psn = receive;
    ASSERT_TRUE(queue_pair->Modify(verbs::QueuePairState::kReadyToReceive, attributes).ok());
    ASSERT_TRUE(queue_pair->Modify(verbs::QueuePairState::kReadyToSend, attributes).ok());
  }

  const RigOptions options_;
  std::vector<uint8_t> memory_;
  base::NoTrace no_trace_;
  Scheduler scheduler_;
  SimLoop network_;
  HashObserver hash_;
  std::unique_ptr<SwitchedFabric> fabric_;
  std::vector<Completed> completed_;
  std::deque<Nic> nics_;
};

}  // namespace tokamak::sim
