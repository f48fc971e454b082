// Two RDMA devices (the lab's, or those of $TOKAMAK_TEST_DEVICES), loops on threads of their own,
// and connections between them, with each connection manager there is.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/ibv/device.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "tests/support/test_devices.h"

namespace tokamak::verbs::ibv {

using Kind = ConnectionEvent::Kind;

// On an emulated processor that others use, too.
constexpr base::Duration kPatience = base::Seconds(60);

struct Manager {
  std::string name;
  Exchange exchange;
};

inline ConnectOptions Patient() {
  ConnectOptions options;
  options.deadline = base::Seconds(30);
  options.reliability.ack_timeout = base::Milliseconds(500);
  return options;
}

// A loop on a thread of its own, with what a queue pair needs.
class Worker final {
 public:
  Worker(Device& device, const std::string& name) : thread_({name}) {
    thread_.CallOn([&] {
      id_ = std::this_thread::get_id();
      domain_ = *device.CreateProtectionDomain();
      completions_ = *device.CreateCompletionQueue(thread_.loop(), 256, [] {});
    });
  }
  ~Worker() {
    thread_.CallOn([&] {
      completions_.reset();
      domain_.reset();
    });
  }

  std::unique_ptr<QueuePair> MakeQueuePair() {
    QueuePairOptions options;
    options.send_queue = options.receive_queue = completions_.get();
    options.max_send_requests = options.max_receive_requests = 4;
    return *domain_->CreateQueuePair(options);
  }

  // Whether there was a completion.
  bool Poll(Completion* completion) {
    size_t count = 0;
    CallOn([&] { count = completions_->Poll(absl::MakeSpan(completion, 1)); });
    return count == 1;
  }

  void CallOn(absl::FunctionRef<void()> call) { thread_.CallOn(call); }
  os::EpollLoop& loop() { return thread_.loop(); }
  bool IsHere() const { return std::this_thread::get_id() == id_; }

 private:
  os::LoopThread thread_;
  std::thread::id id_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> completions_;
};

// One side's end of a connection: lives on its worker's loop.
struct End {
  explicit End(Worker& its_worker) : worker(its_worker) {
    worker.CallOn([&] { queue_pair = worker.MakeQueuePair(); });
  }
  ~End() {
    worker.CallOn([&] {
      connection.reset();
      queue_pair.reset();
    });
  }
  ConnectionHandler Handler() {
    return [this](const ConnectionEvent& event) {
      if (!worker.IsHere()) ++elsewhere;
      if (gone) ++after_drop;
      if (absl::IsCancelled(event.status)) told_that_peer_has_gone = true;
      (event.kind == Kind::kEstablished ? up : over) = true;
    };
  }
  void Drop() {
    worker.CallOn([&] {
      connection.reset();
      gone = true;
    });
  }

  Worker& worker;
  std::unique_ptr<QueuePair> queue_pair;
  std::unique_ptr<Connection> connection;
  std::atomic<bool> up{false}, over{false}, told_that_peer_has_gone{false};
  std::atomic<int> elsewhere{0}, after_drop{0};
  bool gone = false;  // on its loop
};

class ConnectionsTest : public testing::TestWithParam<Manager> {
 protected:
  void SetUp() override {
    const std::vector<std::string> names = testing_support::TestDevices();
    if (names.size() < 2) GTEST_SKIP() << "skipped: two RDMA devices are needed; the lab has them: ci/softroce";
    for (size_t i = 0; i < 2; ++i) {
      DeviceOptions options;
      options.name = *ParseDeviceName(names[i]);
      auto device = OpenIbvDevice(options);
      ASSERT_TRUE(device.ok()) << device.status();
      if (GetParam().exchange == Exchange::kTcp) {
        if (!(*device)->limits().manual_modify) GTEST_SKIP() << "skipped: device lacks Limits::manual_modify";
        options.exchange = Exchange::kTcp;
        options.tcp_address = (*device)->address();
        device->reset();
        device = OpenIbvDevice(options);
        ASSERT_TRUE(device.ok()) << device.status();
      }
      devices_.push_back(*std::move(device));
    }
  }

  static bool Await(const std::function<bool()>& done) {
    os::EpollLoop clock;
    std::function<void()> tick;
    base::Timer timer;
    tick = [&] { timer = clock.RunAfter(base::Milliseconds(1), tick); };
    tick();
    return clock.RunUntil(done, clock.Now() + kPatience);
  }

  std::unique_ptr<Listener> Listen(Worker& worker, RequestHandler handler) {
    std::unique_ptr<Listener> listener;
    worker.CallOn([&] {
      auto made = devices_[1]->connection_manager().Listen(worker.loop(), devices_[1]->address(), std::move(handler));
      EXPECT_TRUE(made.ok()) << made.status();
      if (made.ok()) listener = *std::move(made);
    });
    return listener;
  }

  void Connect(End& end, const Address& service) {
    end.worker.CallOn([&] {
      auto made = devices_[0]->connection_manager().Connect(*end.queue_pair, service, Patient(), end.Handler());
      ASSERT_TRUE(made.ok()) << made.status();
      end.connection = *std::move(made);
    });
  }

  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace tokamak::verbs::ibv
