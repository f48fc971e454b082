// Connections of real verbs among several loops, each on a thread of its own, and what is left of them. Runs on two RDMA devices: in
// the lab, or those of $TOKAMAK_TEST_DEVICES.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/ibv/device.h"
#include "lib/verbs/ibv/device_name.h"
#include "tests/faults/command.h"
#include "tests/faults/wire.h"
#include "tests/support/test_devices.h"

namespace tokamak::verbs::ibv {
namespace {

using Kind = ConnectionEvent::Kind;

// On an emulated processor that others use, too.
constexpr base::Duration kPatience = base::Seconds(60);

struct Manager {
  std::string name;
  Exchange exchange;
};

ConnectOptions Patient() {
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
  std::atomic<bool> up{false}, over{false};
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

INSTANTIATE_TEST_SUITE_P(RealVerbs, ConnectionsTest,
                         testing::Values(Manager{"rdma", Exchange::kRdmaCm}, Manager{"tcp", Exchange::kTcp}),
                         [](const auto& test) { return test.param.name; });

// The listener's loop, the loops of those who accept and those of those who ask are all different.
TEST_P(ConnectionsTest, EachConnectionsEventsRunOnItsQueuePairsLoop) {
  constexpr size_t kCount = 24, kLoops = 2;
  Worker door(*devices_[1], "door");
  std::vector<std::unique_ptr<Worker>> asking, accepting;
  for (size_t i = 0; i < kLoops; ++i) {
    asking.push_back(std::make_unique<Worker>(*devices_[0], "ask"));
    accepting.push_back(std::make_unique<Worker>(*devices_[1], "accept"));
  }
  std::vector<std::unique_ptr<End>> actives, passives;  // passives: the door's until all are there
  std::atomic<size_t> accepted{0};
  auto listener = Listen(door, [&](std::unique_ptr<ConnectionRequest> request) {
    passives.push_back(std::make_unique<End>(*accepting[passives.size() % kLoops]));
    End& end = *passives.back();
    end.worker.CallOn([&] {
      auto made = request->Accept(*end.queue_pair, Patient(), end.Handler());
      EXPECT_TRUE(made.ok()) << made.status();
      if (made.ok()) end.connection = *std::move(made);
      request.reset();
    });
    ++accepted;
  });
  for (size_t i = 0; i < kCount; ++i) {
    actives.push_back(std::make_unique<End>(*asking[i % kLoops]));
    Connect(*actives.back(), listener->address());
  }
  ASSERT_TRUE(Await([&] { return accepted == kCount; })) << accepted;
  for (auto* side : {&actives, &passives}) {
    for (auto& end : *side) EXPECT_TRUE(Await([&] { return end->up.load(); }));
  }
  // Half of them leave; who asked third need not have been accepted third, so any half will do.
  for (size_t i = 0; i < kCount; i += 2) actives[i]->Drop();
  EXPECT_TRUE(Await([&] {
    size_t over = 0;
    for (auto& end : passives) over += end->over.load() ? 1 : 0;
    return over == kCount / 2;
  }));
  for (auto& end : passives) end->Drop();
  for (size_t i = 1; i < kCount; i += 2) EXPECT_TRUE(Await([&] { return actives[i]->over.load(); }));
  for (auto* side : {&actives, &passives}) {
    for (auto& end : *side) {
      EXPECT_EQ(end->elsewhere, 0);
      EXPECT_EQ(end->after_drop, 0);
    }
  }
  door.CallOn([&] { listener.reset(); });
  actives.clear();
  passives.clear();
}

// Attempts are dropped at any moment, requests are forgotten, accepted or left; then no descriptor and no thread is left.
TEST_P(ConnectionsTest, WhereverAnAttemptIsDroppedNothingIsLeft) {
  const auto count = [](const char* folder) {
    size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++entries;
    return entries;
  };
  base::Random random(11);
  const auto round = [&](size_t attempts) {
    Worker door(*devices_[1], "door"), asking(*devices_[0], "ask");
    std::vector<std::unique_ptr<End>> passives;                // the door's
    std::vector<std::unique_ptr<ConnectionRequest>> requests;  // the door's
    base::Random dice(random.Next());
    auto listener = Listen(door, [&](std::unique_ptr<ConnectionRequest> request) {
      if (dice.Below(3) == 0) return;  // forgotten, so rejected
      if (dice.Below(3) == 0) {
        requests.push_back(std::move(request));
        return;
      }
      passives.push_back(std::make_unique<End>(door));
      End& end = *passives.back();
      auto made = request->Accept(*end.queue_pair, Patient(), end.Handler());
      EXPECT_TRUE(made.ok() || absl::IsCancelled(made.status())) << made.status();
      if (made.ok()) end.connection = *std::move(made);
    });
    for (size_t i = 0; i < attempts; ++i) {
      End end(asking);
      Connect(end, listener->address());
      const base::Duration life = base::Microseconds(static_cast<int64_t>(random.Below(40'000)));
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(life.microseconds());
      EXPECT_TRUE(Await([&] { return std::chrono::steady_clock::now() >= until; }));
      end.Drop();
      asking.CallOn([] {});
      EXPECT_EQ(end.elsewhere, 0);
      EXPECT_EQ(end.after_drop, 0);
    }
    door.CallOn([&] {
      listener.reset();
      requests.clear();
    });
    // Whoever came up hears of the end.
    door.CallOn([] {});
    for (auto& end : passives) {
      bool connected = false;
      door.CallOn([&] { connected = end->connection != nullptr; });
      EXPECT_TRUE(!connected || Await([&] { return end->over.load(); }));
    }
    passives.clear();
  };
  round(4);  // what the libraries keep for good
  size_t descriptors = 0, threads = 0;
  ASSERT_TRUE(Await([&] {  // which has descriptors of its own
    descriptors = count("/proc/self/fd");
    threads = count("/proc/self/task");
    return true;
  }));
  round(20);
  EXPECT_TRUE(Await([&] { return count("/proc/self/fd") <= descriptors; })) << "had been " << descriptors;
  EXPECT_TRUE(Await([&] { return count("/proc/self/task") <= threads; })) << "had been " << threads;
}

// Over RoCE and InfiniBand: iWARP's kernel and TCP take an answer first and learn then that nobody hears it.
class DepartureTest : public ConnectionsTest {};
INSTANTIATE_TEST_SUITE_P(RealVerbs, DepartureTest, testing::Values(Manager{"rdma", Exchange::kRdmaCm}),
                         [](const auto& test) { return test.param.name; });

// The passive side is told so, and not of a mistake. The request behind says when the goodbye may have come; that is the word of another
// thread, so it may take more than one attempt.
TEST_P(DepartureTest, AcceptSaysThatTheAskerHasGone) {
  Worker door(*devices_[1], "door"), asking(*devices_[0], "ask");
  std::vector<std::unique_ptr<ConnectionRequest>> requests;  // the door's
  std::atomic<size_t> presented{0};
  auto listener = Listen(door, [&](std::unique_ptr<ConnectionRequest> request) {
    requests.push_back(std::move(request));
    ++presented;
  });
  const auto ask = [&](End& end) {
    const size_t before = presented;
    Connect(end, listener->address());
    return Await([&] { return presented > before; });
  };
  bool told = false;
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(kPatience.microseconds());
  while (!told && std::chrono::steady_clock::now() < until) {
    End leaves(asking), behind(asking), accepts(door);
    ASSERT_TRUE(ask(leaves));
    leaves.Drop();
    ASSERT_TRUE(ask(behind));
    door.CallOn([&] {
      auto made = requests.front()->Accept(*accepts.queue_pair, Patient(), accepts.Handler());
      EXPECT_TRUE(made.ok() || absl::IsCancelled(made.status())) << made.status();
      told = absl::IsCancelled(made.status());
      if (made.ok()) accepts.connection = *std::move(made);
      requests.clear();
    });
  }
  EXPECT_TRUE(told);
  door.CallOn([&] { listener.reset(); });
}

// Another address takes the place in the GID table that ours had, which comes back behind it. Changes the network of the machine that
// it runs on: for the lab's guest, and RoCE.
class MovedAddressTest : public ConnectionsTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConnectionsTest::SetUp());
    if (IsSkipped()) return;
    const auto name = ParseDeviceName(testing_support::TestDevices()[0]);
    const auto net_device = faults::NetDeviceOf(name->device);
    ASSERT_TRUE(net_device.ok()) << net_device.status();
    if (absl::Status s = faults::CheckVirtual(*net_device); !s.ok()) GTEST_SKIP() << "skipped: " << s.message();
    net_device_ = *net_device;
    ours_ = devices_[0]->address().ToString() + "/24";
  }
  // Ours goes back to the place that it had.
  void TearDown() override {
    if (other_.empty()) return;
    Ip("del", other_);
    if (!taken_away_) Ip("del", ours_);
    Ip("add", ours_);
    EXPECT_TRUE(Await([&] { return IndexOfOurs() == before_; })) << IndexOfOurs() << ", had been " << before_;
  }

  void Ip(const char* verb, const std::string& address) {
    EXPECT_EQ(faults::Run({"ip", "address", verb, address, "dev", net_device_}), absl::OkStatus());
  }

  // As the kernel has it now; -1: nowhere.
  int IndexOfOurs() {
    const std::string device = ParseDeviceName(testing_support::TestDevices()[0])->device;
    for (int index = 0; index < 16; ++index) {
      std::ifstream file("/sys/class/infiniband/" + device + "/ports/1/gids/" + std::to_string(index));
      std::string gid;
      if (!(file >> gid)) continue;  // an empty entry cannot be read
      const auto address = Address::Parse(gid);
      if (address.ok() && address->ip == devices_[0]->address().ip) return index;
    }
    return -1;
  }

  std::string net_device_, ours_, other_;
  int before_ = -1;          // IndexOfOurs
  bool taken_away_ = false;  // ours
};

INSTANTIATE_TEST_SUITE_P(RealVerbs, MovedAddressTest,
                         testing::Values(Manager{"rdma", Exchange::kRdmaCm}, Manager{"tcp", Exchange::kTcp}),
                         [](const auto& test) { return test.param.name; });

TEST_P(MovedAddressTest, MessagesPassFromWhereItStandsNow) {
  before_ = IndexOfOurs();
  Ip("del", ours_);
  taken_away_ = true;
  other_ = "10.9.0.1/24";
  Ip("add", other_);
  ASSERT_TRUE(Await([&] { return IndexOfOurs() == -1; }));
  Ip("add", ours_);
  taken_away_ = false;
  ASSERT_TRUE(Await([&] { return IndexOfOurs() != -1; }));
  ASSERT_NE(IndexOfOurs(), before_) << "it came back to its place, and nothing is tried";

  Worker asking(*devices_[0], "ask"), accepting(*devices_[1], "accept");
  End active(asking), passive(accepting);
  auto listener = Listen(accepting, [&](std::unique_ptr<ConnectionRequest> request) {
    auto made = request->Accept(*passive.queue_pair, Patient(), passive.Handler());
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) passive.connection = *std::move(made);
  });
  ASSERT_NE(listener, nullptr);
  accepting.CallOn([&] {
    const ReceiveRequest receive;  // of an empty message
    EXPECT_TRUE(passive.queue_pair->PostReceive(absl::MakeConstSpan(&receive, 1)).ok());
  });
  Connect(active, listener->address());
  ASSERT_TRUE(Await([&] { return active.up && passive.up; }));
  asking.CallOn([&] {
    SendRequest send;
    send.flags = kSignaled;
    EXPECT_TRUE(active.queue_pair->PostSend(absl::MakeConstSpan(&send, 1)).ok());
  });
  Completion done;
  ASSERT_TRUE(Await([&] { return asking.Poll(&done); }));
  EXPECT_EQ(done.status, CompletionStatus::kSuccess) << ToString(done.status);
  accepting.CallOn([&] { listener.reset(); });
}

}  // namespace
}  // namespace tokamak::verbs::ibv
