// Two software NICs on one fabric in virtual time, each with an owner, and what a test needs to
// move bytes between them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/verbs.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs::soft {

// A device and its owner, with one queue pair whose queues share a completion queue.
struct Host {
  sim::SimLoop nic_loop;
  sim::SimLoop loop;
  base::TraceHash trace;
  std::unique_ptr<SoftDevice> device;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<QueuePair> queue_pair;
  std::vector<uint8_t> memory;
  std::unique_ptr<MemoryRegion> region;
  int events = 0;

  explicit Host(sim::Scheduler& scheduler) : nic_loop(scheduler), loop(scheduler) {}

  Sge Piece(size_t offset, size_t length) const {
    return {region->address() + offset, static_cast<uint32_t>(length), region->lkey()};
  }
  uint64_t Remote(size_t offset) const { return reinterpret_cast<uint64_t>(region->address()) + offset; }

  std::vector<Completion> Poll() {
    std::vector<Completion> all(4096);
    all.resize(completions->Poll(absl::MakeSpan(all)));
    return all;
  }
};

constexpr Access kAllAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

class TwoNics : public ::testing::Test {
 protected:
  static constexpr size_t kMemory = 8 << 20;

  TwoNics() : a_(scheduler_), b_(scheduler_) {}

  void Open(Fabric& fabric, const DeviceOptions& options = {}, const QueuePairOptions& queue_pair = Deep()) {
    OpenHost(fabric, options, queue_pair, "10.0.0.1", 1, &a_);
    OpenHost(fabric, options, queue_pair, "10.0.0.2", 2, &b_);
  }

  static QueuePairOptions Deep() {
    QueuePairOptions options;
    options.max_send_requests = 256;
    options.max_receive_requests = 256;
    options.max_sges = 4;
    options.max_inline = 256;
    options.remote_access = kAllAccess;
    return options;
  }

  void Connect(uint32_t mtu = 4096, const ReliabilityOptions& reliability = {}, uint32_t psn = 0xfffff0) {
    Walk(a_, b_, mtu, reliability, psn, psn + 7);
    Walk(b_, a_, mtu, reliability, psn + 7, psn);
  }

  static void Walk(Host& host, Host& peer, uint32_t mtu, const ReliabilityOptions& reliability, uint32_t send_psn,
                   uint32_t receive_psn) {
    QueuePairAttributes attributes;
    attributes.peer = peer.device->address();
    attributes.peer_number = peer.queue_pair->number();
    attributes.path_mtu = mtu;
    attributes.reliability = reliability;
    attributes.send_psn = send_psn & kPsnMask;
    attributes.receive_psn = receive_psn & kPsnMask;
    ASSERT_TRUE(host.queue_pair->Modify(QueuePairState::kReadyToReceive, attributes).ok());
    ASSERT_TRUE(host.queue_pair->Modify(QueuePairState::kReadyToSend, attributes).ok());
  }

  void Run(base::Duration duration = base::Seconds(1)) { scheduler_.RunUntil(scheduler_.Now() + duration); }

  static SendRequest Request(Opcode opcode, const Sge& sge, uint64_t id) {
    sge_ = sge;
    SendRequest request;
    request.id = id;
    request.opcode = opcode;
    request.flags = kSignaled;
    request.sges = absl::MakeConstSpan(&sge_, 1);
    return request;
  }
  static void Post(Host& host, const SendRequest& request) {
    const PostResult result = host.queue_pair->PostSend(absl::MakeConstSpan(&request, 1));
    ASSERT_TRUE(result.ok()) << result.status;
  }
  static void PostReceive(Host& host, const Sge& sge, uint64_t id) {
    ReceiveRequest request;
    request.id = id;
    request.sges = absl::MakeConstSpan(&sge, 1);
    const PostResult result = host.queue_pair->PostReceive(absl::MakeConstSpan(&request, 1));
    ASSERT_TRUE(result.ok()) << result.status;
  }

  static void OpenHost(Fabric& fabric, DeviceOptions options, QueuePairOptions queue_pair, const char* address,
                       uint64_t seed, Host* host) {
    options.address = *Address::Parse(address);
    options.seed += seed;
    auto device = OpenSoftDevice(host->nic_loop, fabric, host->trace, options);
    ASSERT_TRUE(device.ok()) << device.status();
    host->device = *std::move(device);
    host->domain = *host->device->CreateProtectionDomain();
    host->completions = *host->device->CreateCompletionQueue(host->loop, 4096, [host] { ++host->events; });
    queue_pair.send_queue = queue_pair.receive_queue = host->completions.get();
    host->queue_pair = *host->domain->CreateQueuePair(queue_pair);
    host->memory.resize(kMemory);
    for (size_t i = 0; i < kMemory; ++i) host->memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8) * 13 + seed);
    host->region = *host->domain->RegisterMemory(absl::MakeSpan(host->memory), kAllAccess);
  }

  sim::Scheduler scheduler_;
  Host a_;
  Host b_;

 private:
  static inline Sge sge_;
};

}  // namespace tokamak::verbs::soft
