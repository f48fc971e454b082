// A thousand queue pairs of one device: all connect, all move bytes at once, all bytes are right,
// all close.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kQueuePairs = 1000;
constexpr uint32_t kSize = 16 << 10;  // bytes that each moves: together more than a port's buffer holds
constexpr uint32_t kConnecting = 32;  // at once; a listener holds 64
constexpr uint16_t kService = 7;
constexpr base::Duration kPatience = base::Seconds(60);

// Test processes that run side by side have different addresses, also where they share a network
// namespace.
Address AddressOf(int host, uint16_t service = 0) {
  const int process = getpid();
  Address address = *Address::Parse(absl::StrCat("127.", 1 + process / 250 % 250, ".", process % 250, ".", host));
  address.port = service;
  return address;
}

uint8_t Pattern(uint64_t position) { return static_cast<uint8_t>(position * 7 + (position >> 8) * 13); }

// A NIC over UDP on a thread of its own, with an owner's queue pairs, each with a part of the
// memory.
struct CrowdedHost {
  CrowdedHost(os::EpollLoop& loop, int number) : thread({"nic"}), memory(uint64_t{kQueuePairs} * kSize) {
    thread.CallOn([&] {
      fabric = std::make_unique<UdpFabric>(thread.loop());
      DeviceOptions options;
      options.address = AddressOf(number);
      options.seed = static_cast<uint64_t>(number);
      options.run_on_nic_loop = [this](const std::function<void()>& call) { thread.CallOn(call); };
      device = *OpenSoftDevice(thread.loop(), *fabric, trace, options);
    });
    domain = *device->CreateProtectionDomain();
    region = *domain->RegisterMemory(absl::MakeSpan(memory), kLocalWrite | kRemoteWrite | kRemoteRead);
    completions = *device->CreateCompletionQueue(loop, 2 * kQueuePairs, [] {});
  }
  ~CrowdedHost() {
    connections.clear();
    queue_pairs.clear();
    completions.reset();
    region.reset();
    domain.reset();
    device.reset();
    thread.CallOn([this] { fabric.reset(); });
  }

  QueuePair& AddQueuePair() {
    QueuePairOptions options;
    options.send_queue = options.receive_queue = completions.get();
    options.max_send_requests = options.max_receive_requests = 1;
    options.remote_access = kRemoteWrite | kRemoteRead;
    queue_pairs.push_back(*domain->CreateQueuePair(options));
    return *queue_pairs.back();
  }

  os::LoopThread thread;
  base::NoTrace trace;
  std::unique_ptr<UdpFabric> fabric;
  std::unique_ptr<SoftDevice> device;
  std::vector<uint8_t> memory;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<CompletionQueue> completions;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs;
  std::vector<std::unique_ptr<Connection>> connections;
};

class ManyQueuePairsTest : public ::testing::Test {
 protected:
  void ConnectAll() {
    auto listener = passive_.device->connection_manager().Listen(
        loop_, AddressOf(2, kService), [this](std::unique_ptr<ConnectionRequest> request) { Accept(*request); });
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    for (uint32_t i = 0; i < kConnecting; ++i) ConnectNext();
    ASSERT_TRUE(RunUntil([this] { return established_ == kQueuePairs; })) << established_;
  }

  // Each queue pair moves its part of the memory, all at once.
  void MoveAll(Opcode opcode) {
    for (uint32_t i = 0; i < kQueuePairs; ++i) {
      const uint64_t offset = uint64_t{i} * kSize;
      const Sge sge = {&active_.memory[offset], kSize, active_.region->lkey()};
      SendRequest request;
      request.id = i;
      request.opcode = opcode;
      request.flags = kSignaled;
      request.sges = absl::MakeConstSpan(&sge, 1);
      request.remote_address = reinterpret_cast<uintptr_t>(&passive_.memory[offset]);
      request.rkey = passive_.region->rkey();
      const PostResult posted = active_.queue_pairs[i]->PostSend(absl::MakeConstSpan(&request, 1));
      ASSERT_TRUE(posted.ok()) << posted.status;
    }
    std::vector<bool> done(kQueuePairs, false);
    uint32_t count = 0;
    const auto drain = [&] {
      active_.completions->RequestNotify();
      Completion completion;
      while (active_.completions->Poll(absl::MakeSpan(&completion, 1)) == 1) {
        EXPECT_EQ(completion.status, CompletionStatus::kSuccess) << ToString(completion.status);
        EXPECT_FALSE(done[completion.id]) << "completed twice";
        done[completion.id] = true;
        ++count;
      }
      return count == kQueuePairs;
    };
    ASSERT_TRUE(RunUntil(drain)) << count << " completed";
  }

  static void ExpectPattern(const std::vector<uint8_t>& memory) {
    for (uint64_t i = 0; i < memory.size(); ++i) {
      ASSERT_EQ(memory[i], Pattern(i)) << "byte " << i % kSize << " of queue pair " << i / kSize;
    }
  }

  bool RunUntil(const std::function<bool()>& done) { return loop_.RunUntil(done, loop_.Now() + kPatience); }

  os::EpollLoop loop_;
  CrowdedHost active_{loop_, 1};
  CrowdedHost passive_{loop_, 2};
  std::unique_ptr<Listener> listener_;
  uint32_t established_ = 0;
  uint32_t disconnected_ = 0;

 private:
  void Accept(ConnectionRequest& request) {
    auto made = request.Accept(passive_.AddQueuePair(), {}, [this](const ConnectionEvent& event) {
      if (event.kind == ConnectionEvent::Kind::kDisconnected) ++disconnected_;
    });
    ASSERT_TRUE(made.ok()) << made.status();
    passive_.connections.push_back(*std::move(made));
  }

  void ConnectNext() {
    ConnectOptions options;
    options.deadline = kPatience;
    auto made = active_.device->connection_manager().Connect(
        active_.AddQueuePair(), AddressOf(2, kService), options, [this](const ConnectionEvent& event) {
          ASSERT_EQ(event.kind, ConnectionEvent::Kind::kEstablished) << event.status;
          ++established_;
          if (active_.queue_pairs.size() < kQueuePairs) ConnectNext();
        });
    ASSERT_TRUE(made.ok()) << made.status();
    active_.connections.push_back(*std::move(made));
  }
};

TEST_F(ManyQueuePairsTest, AThousandConnectMoveBytesAllAtOnceAndClose) {
  ASSERT_NO_FATAL_FAILURE(ConnectAll());
  for (uint64_t i = 0; i < active_.memory.size(); ++i) active_.memory[i] = Pattern(i);
  ASSERT_NO_FATAL_FAILURE(MoveAll(Opcode::kWrite));
  ExpectPattern(passive_.memory);
  std::fill(active_.memory.begin(), active_.memory.end(), uint8_t{0});
  ASSERT_NO_FATAL_FAILURE(MoveAll(Opcode::kRead));
  ExpectPattern(active_.memory);

  active_.connections.clear();
  EXPECT_TRUE(RunUntil([this] { return disconnected_ == kQueuePairs; })) << disconnected_;
}

}  // namespace
}  // namespace tokamak::verbs::soft
