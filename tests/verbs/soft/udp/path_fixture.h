// Flows of WRITEs between software NICs on real sockets and threads, over a path that a test makes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/verbs/soft/udp/udp_fabric.h"
#include "tests/verbs/conformance/backends/threads_backend.h"

namespace tokamak::verbs::soft {

// NICs that a test opens one by one, each on a thread of its own.
class PathWorld final : public conformance::ThreadsBackend {
 public:
  // `prepare` runs on the NIC's thread before its socket is opened.
  absl::Status Add(
      const std::string& ip, const std::function<void()>& prepare = [] {}, const DeviceOptions& options = {}) {
    return AddNic(
        absl::StrCat("soft:udp@", ip), *Address::Parse(ip),
        [&](os::EpollLoop& loop) {
          prepare();
          return std::make_unique<UdpFabric>(loop);
        },
        options);
  }
  Address nowhere() const override { return {}; }
  SoftDevice& nic(size_t index) { return static_cast<SoftDevice&>(device(index)); }
};

// One side of a flow.
struct PathEnd {
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> completions;
  std::vector<uint8_t> memory;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<QueuePair> queue_pair;

  static constexpr size_t kMemory = 4 << 20;

  PathEnd(PathWorld& world, size_t nic, uint8_t seed) : memory(kMemory) {
    for (size_t i = 0; i < kMemory; ++i) memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8) * 13 + seed);
    domain = *world.device(nic).CreateProtectionDomain();
    completions = *world.device(nic).CreateCompletionQueue(world.loop(nic), 64, [] {});
    region = *domain->RegisterMemory(absl::MakeSpan(memory), kLocalWrite | kRemoteWrite);
    QueuePairOptions options;
    options.max_send_requests = options.max_receive_requests = 16;
    options.max_sges = 1;
    options.remote_access = kRemoteWrite;
    options.send_queue = options.receive_queue = completions.get();
    queue_pair = *domain->CreateQueuePair(options);
  }

  void Connect(const std::string& peer_ip, const PathEnd& peer, uint32_t mtu) {
    QueuePairAttributes attributes;
    attributes.peer = *Address::Parse(peer_ip);
    attributes.peer_number = peer.queue_pair->number();
    attributes.path_mtu = mtu;
    ASSERT_TRUE(queue_pair->Modify(QueuePairState::kReadyToReceive, attributes).ok());
    ASSERT_TRUE(queue_pair->Modify(QueuePairState::kReadyToSend, attributes).ok());
  }
};

// Writes the memory of one end to the other's, again and again.
class PathFlow final {
 public:
  static constexpr uint32_t kRequest = 64 * 1024;

  PathFlow(PathEnd& from, PathEnd& to) : from_(from), to_(to) {}

  // Posts and polls. Stops posting at `most` bytes.
  void Go(uint64_t most) {
    Completion completions[16];
    const size_t count = from_.completions->Poll(absl::MakeSpan(completions));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(completions[i].status, CompletionStatus::kSuccess);
      acknowledged += kRequest;
    }
    for (; started_ - acknowledged < 8 * kRequest && started_ < most; started_ += kRequest) {
      const size_t offset = started_ % PathEnd::kMemory;
      const Sge piece = {from_.memory.data() + offset, kRequest, from_.region->lkey()};
      SendRequest request;
      request.opcode = Opcode::kWrite;
      request.flags = kSignaled;
      request.sges = absl::MakeConstSpan(&piece, 1);
      request.remote_address = reinterpret_cast<uint64_t>(to_.memory.data()) + offset;
      request.rkey = to_.region->rkey();
      ASSERT_TRUE(from_.queue_pair->PostSend(absl::MakeConstSpan(&request, 1)).ok());
    }
  }

  uint64_t acknowledged = 0;  // bytes

 private:
  PathEnd& from_;
  PathEnd& to_;
  uint64_t started_ = 0;
};

}  // namespace tokamak::verbs::soft
