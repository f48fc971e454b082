// Connections whose listener, acceptor and NICs each have a thread of their own, made and dropped
// as fast as they can.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/soft/device.h"
#include "sim/network/loopback_fabric.h"

namespace tokamak::verbs::soft {
namespace {

using Kind = ConnectionEvent::Kind;

// Counts what happens on several threads.
class Tally final {
 public:
  void Add() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  // Returns false when it takes too long.
  bool Await(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return count_ == count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// A device with its NIC's thread.
struct Nic {
  Nic(Fabric& fabric, const char* address, uint64_t seed) : thread({"nic"}) {
    thread.CallOn([&] {
      DeviceOptions options;
      options.address = *Address::Parse(address);
      options.seed = seed;
      options.run_on_nic_loop = [this](const std::function<void()>& call) { thread.CallOn(call); };
      device = *OpenSoftDevice(thread.loop(), fabric, trace, options);
    });
  }
  ~Nic() { device.reset(); }

  os::LoopThread thread;
  base::NoTrace trace;
  std::unique_ptr<SoftDevice> device;
};

// A thread with queue pairs and connections of its own. Members are used there only, except the
// tallies.
struct NicThread {
  explicit NicThread(Nic& on) : nic(on), thread({"engine"}) {
    thread.CallOn([&] {
      domain = *nic.device->CreateProtectionDomain();
      completions = *nic.device->CreateCompletionQueue(thread.loop(), 256, [] {});
    });
  }
  ~NicThread() {
    thread.CallOn([&] {
      ends.clear();
      completions.reset();
      domain.reset();
    });
  }

  struct End {
    std::unique_ptr<QueuePair> queue_pair;
    std::unique_ptr<Connection> connection;
  };

  End& MakeEnd() {
    QueuePairOptions options;
    options.send_queue = options.receive_queue = completions.get();
    ends.push_back(std::make_unique<End>());
    ends.back()->queue_pair = *domain->CreateQueuePair(options);
    return *ends.back();
  }
  ConnectionHandler Handler(End& end, bool drops_when_up) {
    return [this, &end, drops_when_up](const ConnectionEvent& event) {
      if (event.kind == Kind::kEstablished) established.Add();
      if (event.kind == Kind::kEstablished && !drops_when_up) return;
      if (event.kind != Kind::kEstablished) ended.Add();
      end.connection.reset();
    };
  }

  Nic& nic;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> completions;
  std::vector<std::unique_ptr<End>> ends;
  Tally established;
  Tally ended;
  os::LoopThread thread;
};

TEST(ConnectionThreadsTest, RequestsAreAcceptedOnAnotherThreadThanTheirListeners) {
  constexpr int kConnections = 60;
  sim::LoopbackFabric fabric;
  Nic a(fabric, "10.0.0.1", 1), b(fabric, "10.0.0.2", 2);
  os::LoopThread control({"control"});
  for (const bool active_drops : {true, false}) {
    NicThread active(a), passive(b);
    std::unique_ptr<Listener> listener;
    control.CallOn([&] {
      Address address = b.device->address();
      listener = *b.device->connection_manager().Listen(
          control.loop(), address, [&](std::unique_ptr<ConnectionRequest> request) {
            passive.thread.CallOn([&] {
              NicThread::End& end = passive.MakeEnd();
              auto made = request->Accept(*end.queue_pair, {}, passive.Handler(end, !active_drops));
              ASSERT_TRUE(made.ok()) << made.status();
              end.connection = *std::move(made);
            });
          });
    });
    active.thread.CallOn([&] {
      for (int i = 0; i < kConnections; ++i) {
        NicThread::End& end = active.MakeEnd();
        auto made = a.device->connection_manager().Connect(*end.queue_pair, listener->address(), {},
                                                           active.Handler(end, active_drops));
        ASSERT_TRUE(made.ok()) << made.status();
        end.connection = *std::move(made);
      }
    });
    NicThread& dropper = active_drops ? active : passive;
    NicThread& other = active_drops ? passive : active;
    EXPECT_TRUE(dropper.established.Await(kConnections));
    EXPECT_TRUE(other.ended.Await(kConnections));
    control.CallOn([&] { listener.reset(); });
  }
}

TEST(ConnectionThreadsTest, EverythingMayBeDroppedInTheMiddle) {
  sim::LoopbackFabric fabric;
  for (int round = 0; round < 30; ++round) {
    Nic a(fabric, "10.0.0.1", 1), b(fabric, "10.0.0.2", 2);
    NicThread active(a), passive(b);
    std::unique_ptr<Listener> listener;
    passive.thread.CallOn([&] {
      listener = *b.device->connection_manager().Listen(
          passive.thread.loop(), b.device->address(), [&](std::unique_ptr<ConnectionRequest> request) {
            NicThread::End& end = passive.MakeEnd();
            auto made = request->Accept(*end.queue_pair, {}, passive.Handler(end, false));
            if (made.ok()) end.connection = *std::move(made);
          });
    });
    const Address address = listener->address();
    active.thread.CallOn([&] {
      for (int i = 0; i < 20; ++i) {
        NicThread::End& end = active.MakeEnd();
        end.connection =
            *a.device->connection_manager().Connect(*end.queue_pair, address, {}, active.Handler(end, i % 2 == 0));
      }
    });
    if (round % 3 == 0) active.thread.CallOn([&] { active.ends.clear(); });
    for (int i = 0; i < round; ++i) passive.thread.CallOn([] {});  // more or less time for it to go on
    if (round % 2 == 0) passive.thread.CallOn([&] { passive.ends.clear(); });
    passive.thread.CallOn([&] { listener.reset(); });
  }
}

}  // namespace
}  // namespace tokamak::verbs::soft
