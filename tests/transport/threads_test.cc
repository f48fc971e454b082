// The same endpoints on real loops: NICs and engines each on a thread of their own, two engines
// sharing a device, in real time. They show faults that virtual time cannot: data races, and memory
// touched too late by another thread's NIC.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/daemon/devices/device.h"
#include "lib/os/loop_thread.h"
#include "lib/os/secret_seed.h"
#include "lib/transport/endpoint.h"
#include "lib/verbs/soft/device.h"
#include "sim/network/loopback_fabric.h"
#include "tests/support/test_devices.h"
#include "tests/transport/security.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

constexpr uint64_t kArenaSize = 48 << 20;  // real devices pin all of it
constexpr int kObjects = 12;

uint64_t SizeOf(int object) { return static_cast<uint64_t>(object) * object * 20011 % 400000; }

// The pulls of the engines, counted, and the reasons of failures.
struct Score {
  std::atomic<int> ok{0};
  std::atomic<int> failed{0};
  std::atomic<int> wrong{0};
  std::atomic<int> running{0};

  void Fail(const absl::Status& status) {
    ++failed;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++failures_[status.ToString()];
  }
  std::string Failures() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string text;
    for (const auto& [why, count] : failures_) absl::StrAppend(&text, "\n  ", count, " times ", why);
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> failures_;
};

class ScoringSink final : public Sink {
 public:
  ScoringSink(const base::ObjectId& id, absl::Span<uint8_t> memory, Score& score)
      : id_(id), memory_(memory), score_(score) {}
  ~ScoringSink() override { --score_.running; }
  absl::Span<uint8_t> memory() const override { return memory_; }
  void Done(const absl::Status& status, const TransferReport& report) override {
    if (!status.ok()) {
      score_.Fail(status);
    } else if (report.size.total() == memory_.size() && IsObject(id_, memory_)) {
      ++score_.ok;
    } else {
      ++score_.wrong;
    }
  }

 private:
  const base::ObjectId id_;
  const absl::Span<uint8_t> memory_;
  Score& score_;
};

// A thread with an endpoint. Serves kObjects objects and pulls those of others.
struct Setup {
  const char* name;
  bool on_demand;  // registration
  bool secured;    // peers are authenticated, and seal what they say
};

class Engine {
 public:
  Engine(verbs::Device& device, verbs::ProtectionDomain& domain, const Setup& setup, uint16_t port)
      : thread_({absl::StrCat("engine", port)}, os::Detection::Adaptive(base::Microseconds(20))),
        arena_(kArenaSize),
        source_(thread_.loop()),
        device_(device),
        domain_(domain),
        secured_(setup.secured) {
    registration_ = setup.on_demand ? RegisterOnDemand(device, domain) : *RegisterArena(device, domain, arena_.all());
    service_ = device.address();
    service_.port = port;
    for (int i = 0; i < kObjects; ++i) source_.Add(Id(i), arena_.Take(SizeOf(i)), 0);
    thread_.CallOn([this] { Open(); });
  }
  ~Engine() {
    thread_.CallOn([this] { endpoint_.reset(); });
    thread_.Stop();
    EXPECT_EQ(source_.pins(), 0u);
  }

  void Open() {
    EndpointOptions options;
    options.bulk_queue_pairs = 2;
    options.chunk_size = 64 * 1024;
    if (secured_) {
      options.security.secrets = SecretsOf({1});
      options.security.draw = os::DrawSecretBytes;
    }
    // No packet is lost here, but all wait for each other, and all connect at once: on an emulated
    // processor for longer than the defaults.
    if (!testing_support::OnSoftwareNic()) {
      options.reliability.ack_timeout = Seconds(2);
      options.connect_deadline = Seconds(30);
    }
    auto opened = Endpoint::Open(thread_.loop(), device_, domain_, *registration_, source_,
                                 base::Random(service_.port + 1000 * ++lives_), trace_, options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    endpoint_ = *std::move(opened);
    ASSERT_TRUE(endpoint_->Listen(service_).ok());
  }

  static base::ObjectId Id(int object) { return base::ObjectId::FromName(absl::StrCat("object ", object)); }

  // Every object of `owner` under every protocol.
  void PullAll(const Engine& owner, Score& score) {
    const verbs::Address from = owner.service_;
    thread_.CallOn([&] {
      for (Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite, Protocol::kAuto}) {
        for (int i = 0; i < kObjects; ++i) {
          PullRequest request;
          request.id = Id(i);
          request.owner = from;
          request.size = {SizeOf(i), 0};
          request.protocol = protocol;
          ++score.running;
          last_pull_ =
              endpoint_->StartPull(request, std::make_unique<ScoringSink>(request.id, arena_.Take(SizeOf(i)), score));
        }
      }
    });
  }
  void Restart() {
    thread_.CallOn([this] {
      endpoint_.reset();
      Open();
    });
  }
  void CancelLast() {
    thread_.CallOn([this] { endpoint_->CancelPull(last_pull_); });
  }

 private:
  os::LoopThread thread_;
  base::NoTrace trace_;
  FakeArena arena_;
  FakeSource source_;
  verbs::Device& device_;
  verbs::ProtectionDomain& domain_;
  const bool secured_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<Endpoint> endpoint_;
  verbs::Address service_;
  uint64_t lives_ = 0;
  PullId last_pull_ = 0;
};

// A software NIC on a thread of its own, on the fabric of the test.
class NicThread final {
 public:
  NicThread(verbs::soft::Fabric& fabric, int host)
      : thread_({absl::StrCat("nic", host)}, os::Detection::Adaptive(base::Microseconds(20))) {
    thread_.CallOn([&] {
      verbs::soft::DeviceOptions options;
      options.address = *verbs::Address::Parse(absl::StrCat("10.0.0.", host));
      options.seed = static_cast<uint64_t>(host);
      options.run_on_nic_loop = [this](const std::function<void()>& call) { thread_.CallOn(call); };
      device_ = *verbs::soft::OpenSoftDevice(thread_.loop(), fabric, trace_, options);
    });
  }
  ~NicThread() {
    device_.reset();
    thread_.Stop();
  }
  verbs::Device& device() { return *device_; }

 private:
  base::NoTrace trace_;
  os::LoopThread thread_;
  std::unique_ptr<verbs::Device> device_;
};

// A device, and the engines that share it: a software NIC of the test's, unless the environment
// names real ones.
class Host {
 public:
  Host(verbs::soft::Fabric& fabric, int host, const Setup& setup) {
    if (testing_support::OnSoftwareNic()) {
      nic_ = std::make_unique<NicThread>(fabric, host);
    } else {
      opened_ = *daemon::OpenDevice(testing_support::PlaceOfNode(host).device, {});
    }
    verbs::Device& device = nic_ != nullptr ? nic_->device() : opened_->device();
    domain_ = *device.CreateProtectionDomain();
    for (uint16_t port : {7000, 7001}) engines.push_back(std::make_unique<Engine>(device, *domain_, setup, port));
  }

 private:
  std::unique_ptr<NicThread> nic_;
  std::unique_ptr<daemon::OpenedDevice> opened_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;

 public:
  std::vector<std::unique_ptr<Engine>> engines;
};

class ThreadsTest : public ::testing::TestWithParam<Setup> {
 protected:
  ThreadsTest() : a(fabric, 1, GetParam()), b(fabric, 2, GetParam()) {}

  // The main thread looks on.
  static bool Await(const Score& score) {
    os::EpollLoop loop;
    base::Timer tick;
    std::function<void()> look = [&] { tick = loop.RunAfter(Milliseconds(1), look); };
    look();
    return loop.RunUntil([&] { return score.running == 0; }, loop.Now() + Seconds(60));
  }

  sim::LoopbackFabric fabric;
  Host a;
  Host b;
};

TEST_P(ThreadsTest, EverybodyPullsFromEverybody) {
  Score score;
  for (auto& puller : a.engines) {
    for (auto& owner : b.engines) {
      puller->PullAll(*owner, score);
      owner->PullAll(*puller, score);
    }
  }
  EXPECT_TRUE(Await(score)) << score.running << " pulls did not end";
  EXPECT_EQ(score.ok, 8 * 4 * kObjects);
  EXPECT_EQ(score.wrong, 0);
  EXPECT_EQ(score.failed, 0) << score.Failures();
}

TEST_P(ThreadsTest, EnginesComeAndGo) {
  Score score;
  for (int round = 0; round < 5; ++round) {
    a.engines[0]->PullAll(*b.engines[0], score);
    b.engines[0]->PullAll(*a.engines[0], score);
    b.engines[1]->PullAll(*a.engines[0], score);
    b.engines[1]->CancelLast();
    (round % 2 == 0 ? a : b).engines[0]->Restart();
  }
  EXPECT_TRUE(Await(score)) << score.running << " pulls did not end";
  EXPECT_EQ(score.wrong, 0);
  Score after;
  a.engines[0]->PullAll(*b.engines[0], after);
  EXPECT_TRUE(Await(after));
  EXPECT_EQ(after.wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Registration, ThreadsTest,
                         ::testing::Values(Setup{"arena", false, false}, Setup{"on_demand", true, false},
                                           Setup{"secured", false, true}),
                         [](const ::testing::TestParamInfo<Setup>& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace tokamak::transport::testing
