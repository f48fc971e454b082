// Owners on threads of their own, each with queue pairs on the same two NICs, which have threads
// too: what one owner does, makes and drops never disturbs another. (Run it with --config=tsan.)
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/soft/device.h"
#include "sim/network/loopback_fabric.h"

namespace tokamak::verbs::soft {
namespace {

constexpr size_t kSize = 20000;
constexpr Access kAll = kLocalWrite | kRemoteWrite | kRemoteRead;

// A NIC on a thread of its own.
struct Card {
  explicit Card(sim::LoopbackFabric& fabric, const char* address) : thread({"nic"}) {
    DeviceOptions options;
    options.address = *Address::Parse(address);
    options.run_on_nic_loop = [this](const std::function<void()>& call) { thread.CallOn(call); };
    thread.CallOn([&] { device = *OpenSoftDevice(thread.loop(), fabric, trace, options); });
  }
  os::LoopThread thread;
  base::NoTrace trace;
  std::unique_ptr<SoftDevice> device;
};

// One end of a connection. Its memory has two parts: one that is sent from and written to, and one
// that the peer READs and nobody writes, since a READ may be answered a second time after it has
// completed.
struct End {
  End(Card& on, os::EpollLoop& loop, uint8_t seed) : card(on), memory(2 * kSize) {
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(seed + i * 7);
    domain = *card.device->CreateProtectionDomain();
    completions = *card.device->CreateCompletionQueue(loop, 128, [this] { event = true; });
    region = *domain->RegisterMemory(absl::MakeSpan(memory), kAll);
    QueuePairOptions options;
    options.send_queue = options.receive_queue = completions.get();
    options.remote_access = kAll;
    queue_pair = *domain->CreateQueuePair(options);
  }
  void Walk(const End& peer) {
    QueuePairAttributes attributes;
    attributes.peer = peer.card.device->address();
    attributes.peer_number = peer.queue_pair->number();
    ASSERT_TRUE(queue_pair->Modify(QueuePairState::kReadyToReceive, attributes).ok());
    ASSERT_TRUE(queue_pair->Modify(QueuePairState::kReadyToSend, attributes).ok());
  }
  uint8_t* source() { return memory.data() + kSize; }
  Sge whole() { return {memory.data(), kSize, region->lkey()}; }
  bool Post(Opcode opcode, End& peer, uint64_t id) { return Post(opcode, peer, id, peer.region->rkey()); }
  bool Post(Opcode opcode, End& peer, uint64_t id, uint32_t rkey) {
    const Sge sge = whole();
    SendRequest request;
    request.id = id;
    request.opcode = opcode;
    request.flags = kSignaled;
    request.sges = absl::MakeConstSpan(&sge, 1);
    request.remote_address = reinterpret_cast<uint64_t>(opcode == Opcode::kRead ? peer.source() : peer.memory.data());
    request.rkey = rkey;
    return queue_pair->PostSend(absl::MakeConstSpan(&request, 1)).ok();
  }
  void PostReceive(uint64_t id) {
    const Sge sge = whole();
    ReceiveRequest request{id, absl::MakeConstSpan(&sge, 1)};
    ASSERT_TRUE(queue_pair->PostReceive(absl::MakeConstSpan(&request, 1)).ok());
  }
  // Waits for one completion by its event.
  Completion Await(os::EpollLoop& loop) {
    Completion completion;
    for (;;) {
      event = false;
      completions->RequestNotify();
      if (completions->Poll(absl::MakeSpan(&completion, 1)) == 1) return completion;
      if (!loop.RunUntil([this] { return event; }, loop.Now() + base::Seconds(30))) {
        ADD_FAILURE() << "no event";
        return completion;
      }
    }
  }

  Card& card;
  std::vector<uint8_t> memory;
  bool event = false;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<QueuePair> queue_pair;
};

class ThreadsTest : public ::testing::Test {
 protected:
  // Runs `owner` on several threads at once.
  static void OnThreads(const std::function<void(uint64_t seed)>& owner) {
    std::vector<std::thread> threads;
    for (uint64_t seed = 1; seed <= 3; ++seed) threads.emplace_back(owner, seed);
    for (std::thread& thread : threads) thread.join();
  }

  sim::LoopbackFabric fabric_;
  Card left_{fabric_, "10.0.0.1"};
  Card right_{fabric_, "10.0.0.2"};
};

TEST_F(ThreadsTest, OwnersMoveBytesSideBySide) {
  OnThreads([this](uint64_t seed) {
    os::EpollLoop loop;
    End a(left_, loop, static_cast<uint8_t>(seed)), b(right_, loop, static_cast<uint8_t>(100 + seed));
    a.Walk(b);
    b.Walk(a);
    base::Random random(seed);
    for (uint64_t i = 0; i < 300; ++i) {
      std::memset(b.memory.data(), 0, kSize);
      const uint64_t kind = random.Below(3);
      if (kind == 0) b.PostReceive(i);
      ASSERT_TRUE(a.Post(kind == 0 ? Opcode::kSend : kind == 1 ? Opcode::kWrite : Opcode::kRead, b, i));
      const Completion done = a.Await(loop);
      ASSERT_EQ(done.status, CompletionStatus::kSuccess);
      ASSERT_EQ(done.id, i);
      if (kind == 0) {
        ASSERT_EQ(b.Await(loop).byte_count, kSize);
      }
      ASSERT_EQ(std::memcmp(a.memory.data(), kind == 2 ? b.source() : b.memory.data(), kSize), 0);
      if (kind == 2) {
        for (size_t k = 0; k < kSize; ++k) a.memory[k] = static_cast<uint8_t>(i + k);
      }
    }
  });
}

TEST_F(ThreadsTest, OwnersMakeAndDropEverythingWhileOthersWork) {
  OnThreads([this](uint64_t seed) {
    os::EpollLoop loop;
    base::Random random(seed);
    for (int round = 0; round < 60; ++round) {
      auto a = std::make_unique<End>(left_, loop, 1), b = std::make_unique<End>(right_, loop, 2);
      a->Walk(*b);
      b->Walk(*a);
      for (uint64_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(a->Post(i % 2 == 0 ? Opcode::kWrite : Opcode::kRead, *b, i));
        ASSERT_TRUE(b->Post(i % 2 == 0 ? Opcode::kRead : Opcode::kWrite, *a, i));
      }
      a->completions->RequestNotify();
      for (uint64_t wait = random.Below(3); wait > 0; --wait) a->Await(loop);
      switch (random.Below(5)) {
        case 0:
          a->region.reset();
          std::memset(a->memory.data(), 7, kSize);
          break;
        case 1:
          b->queue_pair.reset();
          break;
        case 2:
          ASSERT_TRUE(a->queue_pair->Modify(QueuePairState::kError).ok());
          break;
        case 3:
          a->completions.reset();
          break;
        default:
          ASSERT_TRUE(b->queue_pair->Modify(QueuePairState::kReset).ok());
      }
      (random.Chance(0.5) ? a : b).reset();
    }
  });
  EXPECT_GT(left_.device->counters().queue_pairs.packets_sent, 0u);
}

TEST_F(ThreadsTest, RequestsPostedWhileTheQueuePairFailsAreAllFlushed) {
  OnThreads([this](uint64_t seed) {
    os::EpollLoop loop;
    for (int round = 0; round < 100; ++round) {
      End a(left_, loop, static_cast<uint8_t>(seed)), b(right_, loop, 2);
      a.Walk(b);
      b.Walk(a);
      b.region.reset();
      b.region = *b.domain->RegisterMemory(absl::MakeSpan(b.memory), kLocalWrite);  // the peer may not write
      uint64_t posted = 0;
      while (posted < 30 && a.Post(Opcode::kWrite, b, posted)) {
        a.PostReceive(1000 + posted);
        ++posted;
      }
      uint64_t sends = 0, receives = 0;
      for (uint64_t i = 0; i < 2 * posted; ++i) {
        const Completion completion = a.Await(loop);
        ASSERT_NE(completion.status, CompletionStatus::kSuccess);
        if (completion.id < 1000) {
          ASSERT_EQ(completion.id, sends++);
        } else {
          ASSERT_EQ(completion.id, 1000 + receives++);
        }
      }
    }
  });
}

TEST_F(ThreadsTest, NothingIsWrittenThroughAWindowThatWasClosed) {
  OnThreads([this](uint64_t seed) {
    os::EpollLoop loop;
    base::Random random(seed);
    for (int round = 0; round < 40; ++round) {
      End a(left_, loop, static_cast<uint8_t>(seed)), b(right_, loop, 2);
      a.Walk(b);
      b.Walk(a);
      auto ground = *b.domain->RegisterMemory(absl::MakeSpan(b.memory), kLocalWrite | kWindowBind);
      auto window = *b.domain->CreateMemoryWindow();
      SendRequest bind;
      bind.id = 1;
      bind.opcode = Opcode::kBindWindow;
      bind.flags = kSignaled;
      bind.bind = {window.get(), ground.get(), b.memory.data(), kSize, kRemoteWrite};
      ASSERT_TRUE(b.queue_pair->PostSend({&bind, 1}).ok());
      ASSERT_EQ(b.Await(loop).status, CompletionStatus::kSuccess);
      constexpr uint64_t kWrites = 20;
      for (uint64_t i = 0; i < kWrites; ++i) ASSERT_TRUE(a.Post(Opcode::kWrite, b, i, window->rkey()));
      uint64_t seen = 0;
      for (const uint64_t wait = random.Below(4); seen < wait; ++seen) {
        ASSERT_EQ(a.Await(loop).status, CompletionStatus::kSuccess);
      }
      const uint64_t how = random.Below(3);
      if (how == 0) window.reset();
      if (how == 1) ground.reset();
      if (how == 2) {
        SendRequest invalidate;
        invalidate.opcode = Opcode::kLocalInvalidate;
        invalidate.flags = kSignaled;
        invalidate.rkey = window->rkey();
        ASSERT_TRUE(b.queue_pair->PostSend({&invalidate, 1}).ok());
        b.Await(loop);  // flushed, where the peer met the closed window first
      }
      std::memset(b.memory.data(), 7, kSize);
      for (; seen < kWrites; ++seen) a.Await(loop);
      ASSERT_EQ(std::count(b.memory.data(), b.source(), 7), static_cast<ptrdiff_t>(kSize)) << "way " << how;
    }
  });
}

TEST_F(ThreadsTest, QueuePairsOfAnOwnerShareReceives) {
  OnThreads([this](uint64_t seed) {
    os::EpollLoop loop;
    constexpr uint64_t kPeers = 3, kEach = 100, kDepth = 4;
    End home(right_, loop, 1);
    auto shared = *home.domain->CreateSharedReceiveQueue(kDepth, 1);
    int low = 0;
    auto watch =
        right_.device->Watch(loop, [&](const DeviceEventInfo& info) { low += info.shared_receives == shared.get(); });
    std::vector<std::unique_ptr<QueuePair>> drawing;
    std::vector<std::unique_ptr<End>> peers;
    for (uint64_t i = 0; i < kPeers; ++i) {
      QueuePairOptions options;
      options.send_queue = options.receive_queue = home.completions.get();
      options.shared_receives = shared.get();
      drawing.push_back(std::exchange(home.queue_pair, *home.domain->CreateQueuePair(options)));
      peers.push_back(std::make_unique<End>(left_, loop, static_cast<uint8_t>(10 * seed + i)));
      home.Walk(*peers[i]);
      peers[i]->Walk(home);
    }
    const auto post = [&](uint64_t id) {
      const Sge sge{home.memory.data() + id * kSize / kDepth, kSize / kDepth, home.region->lkey()};
      const ReceiveRequest request{id, {&sge, 1}};
      ASSERT_TRUE(shared->PostReceive({&request, 1}).ok());
    };
    for (uint64_t id = 0; id < kDepth; ++id) post(id);
    ASSERT_TRUE(shared->Arm(kDepth).ok());
    std::vector<uint64_t> sent(kPeers, 0);
    uint64_t total = 0;
    for (uint64_t received = 0; received < kPeers * kEach; ++received) {
      for (uint64_t i = 0; i < kPeers; ++i) {
        Completion done;
        // Never more than there are receives, so that nobody has to try again and again.
        if (sent[i] < kEach && total < received + kDepth) {
          const Sge sge{peers[i]->memory.data(), kSize / kDepth, peers[i]->region->lkey()};
          SendRequest request;
          request.id = sent[i]++;
          request.flags = kSignaled;
          request.sges = {&sge, 1};
          ASSERT_TRUE(peers[i]->queue_pair->PostSend({&request, 1}).ok());
          ++total;
        }
        while (peers[i]->completions->Poll({&done, 1}) == 1) ASSERT_EQ(done.status, CompletionStatus::kSuccess);
      }
      const Completion done = home.Await(loop);
      ASSERT_EQ(done.status, CompletionStatus::kSuccess);
      ASSERT_LT(done.id, kDepth);
      ASSERT_EQ(done.byte_count, kSize / kDepth);
      const uint8_t* bytes = home.memory.data() + done.id * kSize / kDepth;
      for (size_t k = 1; k < kSize / kDepth; ++k) ASSERT_EQ(bytes[k], static_cast<uint8_t>(bytes[0] + k * 7));
      post(done.id);
    }
    EXPECT_TRUE(loop.RunUntil([&] { return low == 1; }, loop.Now() + base::Seconds(30)));
  });
}

}  // namespace
}  // namespace tokamak::verbs::soft
