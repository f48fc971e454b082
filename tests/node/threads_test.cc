// Nodes whose engines and NICs have threads of their own, over real sockets or real devices: what
// virtual time cannot show.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/daemon/devices/device.h"
#include "lib/directory/local.h"
#include "lib/node/machine.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/loop_thread.h"
#include "lib/transport/memory/registration.h"
#include "tests/support/test_devices.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;
using transport::Protocol;

constexpr base::Duration kPatience = Seconds(60);
constexpr size_t kMemory = 16 << 20;
static_assert(2 * kMaxPullsOfPeer * (96 << 10) <= kMemory);

struct alignas(64) Block {
  uint8_t bytes[64];
};

class EngineThread final : public EngineLoop {
 public:
  explicit EngineThread(size_t number) : thread_(os::ThreadOptions{absl::StrCat("engine", number)}) {}
  base::EventLoop& loop() override { return thread_.loop(); }
  void CallOn(absl::FunctionRef<void()> call) override { thread_.CallOn(call); }
  void Stop() override { thread_.Stop(); }

 private:
  os::LoopThread thread_;
};

// A directory that all machines share, since their control loop is one.
class SharedDirectory final : public DirectoryHost {
 public:
  explicit SharedDirectory(directory::Directory& directory) : directory_(directory) {}
  directory::Directory& directory() override { return directory_; }
  void Serve(Node&) override {}

 private:
  directory::Directory& directory_;
};

// One node; its control loop is the test's, which all nodes share.
class TestMachine {
 public:
  TestMachine(os::EpollLoop& loop, directory::Directory& directory, int index, size_t engines)
      : memory_(new Block[kMemory / sizeof(Block)]) {
    daemon::DeviceSettings settings;
    settings.seed = static_cast<uint64_t>(index) + 1;
    device_ = *daemon::OpenDevice(testing_support::PlaceOfNode(index + 1).device, settings);
    domain_ = *device_->device().CreateProtectionDomain();
    const absl::Span<uint8_t> arena = absl::MakeSpan(memory_[0].bytes, kMemory);
    registration_ = *transport::RegisterArena(device_->device(), *domain_, arena);
    MachineOptions options;
    options.node.id = absl::StrCat("n", index);
    options.node.pulls.short_way = 64 << 10;  // so that what is bulk need not be large
    options.listen = testing_support::PlaceOfNode(index + 1).listen;
    options.seed = settings.seed;
    std::vector<std::unique_ptr<EngineLoop>> loops;
    for (size_t i = 0; i < engines; ++i) loops.push_back(std::make_unique<EngineThread>(i));
    const transport::Rail rail{device_->device(), *domain_, *registration_};
    auto machine =
        Machine::Assemble({loop, std::move(loops), arena, absl::MakeConstSpan(&rail, 1), absl::MakeConstSpan(&rail, 1),
                           [&directory](Engine&, base::Random) -> absl::StatusOr<std::unique_ptr<DirectoryHost>> {
                             return std::make_unique<SharedDirectory>(directory);
                           },
                           trace_},
                          options);
    EXPECT_TRUE(machine.ok()) << machine.status();
    machine_ = *std::move(machine);
    me = store().NewOwner();
    machine_->Start([](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  }
  ~TestMachine() {
    EndEngines();
    EXPECT_EQ(store().statistics().unsealed_objects, 0u);
    EXPECT_EQ(store().CheckConsistency(), absl::OkStatus());
  }

  store::Store& store() { return machine_->store(); }
  Node& node() { return machine_->node(); }
  void EndEngines() { machine_->StopEngines(); }

  void Put(const std::string& name, uint64_t size) {
    const base::ObjectId id = base::ObjectId::FromName(name);
    const auto place = store().Create(id, size, 0, me);
    ASSERT_TRUE(place.ok()) << place.status();
    for (uint8_t& byte : store().Memory(*place)) byte = id.data()[0];
    ASSERT_TRUE(store().Seal(id, me).ok());
  }
  bool IsRight(const GetResult& result) {
    for (const uint8_t byte : store().Bytes(*result.location)) {
      if (byte != result.id.data()[0]) return false;
    }
    return true;
  }

  store::Owner me{};

 private:
  base::NoTrace trace_;
  const std::unique_ptr<Block[]> memory_;
  std::unique_ptr<daemon::OpenedDevice> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<transport::Registration> registration_;
  std::unique_ptr<Machine> machine_;
};

class ThreadsTest : public testing::TestWithParam<size_t> {
 protected:
  ThreadsTest() {
    for (int i = 0; i < 2; ++i) {
      machines_.push_back(std::make_unique<TestMachine>(loop_, directory_, i, GetParam()));
    }
  }

  struct Got {
    bool done = false;
    std::vector<GetResult> results;
    base::Pending handle;
  };
  std::shared_ptr<Got> StartGet(TestMachine& machine, const std::vector<std::string>& names, Protocol protocol) {
    std::vector<base::ObjectId> ids;
    for (const std::string& name : names) ids.push_back(base::ObjectId::FromName(name));
    GetOptions options;
    options.timeout = kPatience;
    options.protocol = protocol;
    auto got = std::make_shared<Got>();
    got->handle = machine.node().Get(ids, options, machine.me, [got = got.get()](absl::Span<const GetResult> results) {
      got->done = true;
      got->results.assign(results.begin(), results.end());
    });
    return got;
  }
  void Await(const std::shared_ptr<Got>& got) {
    EXPECT_TRUE(loop_.RunUntil([&] { return got->done; }, loop_.Now() + kPatience * 2));
  }
  static void Release(TestMachine& machine, const Got& got) {
    for (const GetResult& result : got.results) {
      if (!result.location.has_value()) continue;
      EXPECT_TRUE(machine.IsRight(result));
      EXPECT_TRUE(machine.store().Release(result.id, machine.me).ok());
    }
  }

  os::EpollLoop loop_;
  directory::LocalDirectory directory_{loop_};
  std::vector<std::unique_ptr<TestMachine>> machines_;
};

INSTANTIATE_TEST_SUITE_P(Engines, ThreadsTest, testing::Values(0, 1, 2));

TEST_P(ThreadsTest, ObjectsTravelByEachProtocol) {
  for (const Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) {
      names.push_back(absl::StrCat(transport::ToString(protocol), i));
      machines_[0]->Put(names.back(), 10'000 * static_cast<uint64_t>(i));
    }
    const auto got = StartGet(*machines_[1], names, protocol);
    Await(got);
    for (const GetResult& result : got->results) EXPECT_EQ(result.status, absl::OkStatus());
    Release(*machines_[1], *got);
  }
}

TEST_P(ThreadsTest, GetsThatComeAndGoInBothDirectionsLeaveNothing) {
  base::Random random(GetParam());
  for (int i = 0; i < 20; ++i) {
    machines_[static_cast<size_t>(i) % 2]->Put(absl::StrCat(i), 50'000 * static_cast<uint64_t>(i % 5));
  }
  std::vector<std::pair<size_t, std::shared_ptr<Got>>> gets;
  for (int step = 0; step < 200; ++step) {
    const size_t machine = random.Below(2);
    gets.emplace_back(machine, StartGet(*machines_[machine], {absl::StrCat(random.Below(20))},
                                        static_cast<Protocol>(random.Below(4))));
    const auto now = loop_.Now();
    loop_.RunUntil([] { return false; }, now + base::Microseconds(static_cast<int64_t>(random.Below(1000))));
    if (random.Chance(0.3)) {
      const size_t dropped = random.Below(gets.size());
      gets[dropped].second->handle.reset();
      Release(*machines_[gets[dropped].first], *gets[dropped].second);
      gets.erase(gets.begin() + static_cast<ptrdiff_t>(dropped));
    }
    if (random.Chance(0.2)) {
      (void)machines_[machine]->store().Evict(1 << 20);
      (void)machines_[machine]->store().Delete(base::ObjectId::FromName("none"));
    }
    for (int i = 0; i < 20; ++i) {  // what was evicted everywhere comes back
      const base::ObjectId id = base::ObjectId::FromName(absl::StrCat(i));
      TestMachine& home = *machines_[static_cast<size_t>(i) % 2];
      if (!home.store().Stat(id).ok()) home.Put(absl::StrCat(i), 50'000 * static_cast<uint64_t>(i % 5));
    }
  }
  for (const auto& [machine, got] : gets) {
    Await(got);
    Release(*machines_[machine], *got);
  }
  const auto quiet = [this] {
    return machines_[0]->node().pins_of_peers() + machines_[1]->node().pins_of_peers() == 0 &&
           machines_[0]->node().pulls().running() + machines_[1]->node().pulls().running() == 0;
  };
  EXPECT_TRUE(loop_.RunUntil(quiet, loop_.Now() + kPatience));
}

// More objects than are moved at a time: however fast the first arrive, the next begin in a turn of
// the control loop, and there is none before the engines end.
TEST_P(ThreadsTest, EnginesThatEndInTheMiddleGiveEverythingBack) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 2 * kMaxPullsOfPeer; ++i) {
    names.push_back(absl::StrCat(i));
    machines_[0]->Put(names.back(), 96 << 10);  // bulk, where that has an engine of its own
  }
  const auto got = StartGet(*machines_[1], names, Protocol::kAuto);
  EXPECT_TRUE(loop_.RunUntil([this] { return machines_[0]->node().pins_of_peers() > 0; }, loop_.Now() + kPatience));
  machines_[1]->EndEngines();
  loop_.RunUntil([] { return false; }, loop_.Now() + Milliseconds(50));
  EXPECT_FALSE(got->done);  // it goes on trying
  got->handle.reset();
  (void)machines_[1]->store().Evict(kMemory);  // what had come
  EXPECT_EQ(machines_[1]->store().statistics().used_bytes, 0u);
  EXPECT_TRUE(loop_.RunUntil([this] { return machines_[0]->node().pins_of_peers() == 0; }, loop_.Now() + kPatience));
}

}  // namespace
}  // namespace tokamak::node
