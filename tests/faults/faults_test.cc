// Three daemons on real devices, and what becomes of gets when something breaks: each ends by its
// deadline with the right bytes or with an error that says what was in its way, the next holder
// serves, and nothing leaks.
//
// Node 1 gets. Node 2, `far`, holds objects behind the wire; node 3, `near`, holds copies and
// shares the getter's device. Breaks the network of the machine that it runs on: for the lab's
// guest.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "tests/daemon/tokd_process.h"
#include "tests/faults/command.h"
#include "tests/faults/usage.h"
#include "tests/faults/wire.h"
#include "tests/support/test_devices.h"

namespace tokamak::faults {
namespace {

using daemon::Eventually;
using daemon::Number;
using daemon::Pattern;
using daemon::TokdProcess;
using std::chrono::steady_clock;
using Got = Result<Buffer>;
using Strings = std::vector<std::string>;

constexpr size_t kLarge = 16 << 20;  // long enough in transfer to be caught in the middle
constexpr std::chrono::seconds kDeadline(30);
// An answer travels through two processes of an emulated machine.
constexpr std::chrono::seconds kGrace(5);
constexpr int kTries = 20;

ObjectId Id(const std::string& name) { return ObjectId::FromName(name); }

// The large object's bytes.
const std::vector<uint8_t>& Large() {
  static const std::vector<uint8_t> bytes = Pattern(kLarge, 9);
  return bytes;
}

// Lets a fault last: what happens meanwhile happens in other processes.
void Last(base::Duration time) { poll(nullptr, 0, static_cast<int>(time.microseconds() / 1000)); }

class FaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    const Strings devices = testing_support::TestDevices();
    if (devices.size() < 2)
      GTEST_SKIP() << "skipped: TOKAMAK_TEST_DEVICES names no two RDMA devices; run it in the lab";
    for (const std::string& device : devices) {
      const auto parsed = verbs::ibv::ParseDeviceName(device);
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      const auto net_device = NetDeviceOf(parsed->device);
      ASSERT_TRUE(net_device.ok()) << net_device.status();
      if (absl::Status s = CheckVirtual(*net_device); !s.ok()) GTEST_SKIP() << "skipped: " << s.message();
      rdma_devices_.push_back(parsed->device);
      wire_.push_back(*net_device);
    }
    const auto before = UsageOfAll();
    ASSERT_TRUE(before.ok()) << before.status();
    before_ = *before;
    for (int node : {1, 2, 3}) {
      Strings flags = {"--memory", "64MiB", "--cm", ConnectionManager()};
      if (node != 1) {
        for (const std::string& flag : daemon::DirectoryOfNode1()) flags.push_back(flag);
      }
      nodes_.push_back(std::make_unique<TokdProcess>(folder_, node, flags));
      ASSERT_NO_FATAL_FAILURE(nodes_.back()->AwaitReady());
      clients_.push_back(nodes_.back()->Connect());
    }
    // Connections stand before anything breaks, so what each process has open is known.
    // Small objects and large ones (beyond node::kShortWay) go between engines of their own.
    for (size_t holder : {1, 2}) {
      for (const size_t size : {100, 300'000, 2 << 20}) {
        const ObjectId id = Id(absl::StrCat("first", holder, " ", size));
        ASSERT_TRUE(clients_[holder].Put(id, Pattern(size, 1)).ok());
        for (const Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
          const Got got = clients_[0].Get(id, kDeadline, {protocol});
          ASSERT_TRUE(got.ok()) << got.status();
          DropCopies();
        }
      }
    }
    usage_ = UsageOfGetter();
    descriptors_ = faults::DescriptorsOf(nodes_[0]->pid());
    ++usage_.regions;  // SlotPool keeps one free block, once windows have grown
  }

  // tokd's --cm.
  virtual const char* ConnectionManager() const { return "rdma"; }

  // No object is pinned or half done, and the getter has no more open than before; then all end
  // well, and the kernel keeps nothing.
  void TearDown() override {
    if (nodes_.size() < 3 || IsSkipped()) return;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i] == nullptr) continue;
      for (const char* number : {"pins_of_peers", "pulls_running", "store_quarantined_bytes"}) {
        EXPECT_TRUE(Eventually([&] { return Number(clients_[i], number) == 0; })) << "node" << i + 1 << ": " << number;
      }
    }
    Usage now;
    EXPECT_TRUE(Eventually([&] { return (now = UsageOfGetter()).NoMoreThan(usage_); }))
        << "the getter has " << now << ":\n"
        << faults::DescriptorsOf(nodes_[0]->pid()) << "before the fault " << usage_ << ":\n"
        << descriptors_;
    clients_.clear();
    while (!nodes_.empty()) {
      if (nodes_.back() != nullptr) {
        const daemon::Ended ended = nodes_.back()->Terminate();
        EXPECT_EQ(ended.status.code, 0) << ended.status.ToString() << "\n" << ended.text;
      }
      nodes_.pop_back();
    }
    const auto kept = [this] {
      const auto after = UsageOfAll();
      EXPECT_TRUE(after.ok()) << after.status();
      return after.ok() && after->NoMoreThan(before_);
    };
    EXPECT_TRUE(Eventually(kept)) << "the kernel keeps RDMA objects of processes that ended";
  }

  Usage UsageOfGetter() {
    const auto usage = UsageOf(nodes_[0]->pid());
    EXPECT_TRUE(usage.ok()) << usage.status();
    return usage.ok() ? *usage : Usage();
  }

  void DropCopies() { EXPECT_TRUE(clients_[0].Evict(UINT64_MAX).ok()); }

  void PutLarge(const std::string& name, bool also_near) {
    PutOptions confirmed;
    confirmed.confirmed = true;
    const Status status = clients_[1].Put(Id(name), Large(), {}, confirmed);
    ASSERT_TRUE(status.ok()) << status;
    if (also_near) ExpectRight(clients_[2].Get(Id(name), kDeadline));
  }

  static void ExpectRight(const Got& got) {
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->data().size(), kLarge);
    EXPECT_EQ(std::memcmp(got->data().data(), Large().data(), kLarge), 0);
  }

  // Starts to get the object, and returns while `far` is serving it.
  std::future<Got> GetFromFar(const std::string& name, Protocol protocol = Protocol::kRead) {
    for (int attempt = 0; attempt < kTries; ++attempt) {
      DropCopies();
      asked_ = steady_clock::now();
      auto get = std::async(std::launch::async, [this, name, protocol] {
        Client client = nodes_[0]->Connect();
        return client.Get(Id(name), kDeadline, {protocol});
      });
      while (get.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        if (Number(clients_[1], "pins_of_peers") > 0) return get;
      }
    }
    ADD_FAILURE() << "the holder behind the wire was never caught in the middle of serving";
    return std::async(std::launch::deferred, [] { return Got(Status(StatusCode::kInternal, "not asked")); });
  }

  // Returns the get's result; fails the test if that took longer than its deadline.
  Got AwaitEnd(std::future<Got> get) const {
    Got got = get.get();
    const std::chrono::duration<double> took = steady_clock::now() - asked_;
    EXPECT_LE(took.count(), std::chrono::duration<double>(kDeadline + kGrace).count()) << got.status();
    RecordProperty("seconds", absl::StrCat(took.count()));
    return got;
  }

  // While `far` is out of reach: the get that it was serving goes well, and so does the next, which
  // `near` serves.
  void ExpectNearServes(const std::string& name, std::future<Got> get) {
    ExpectRight(AwaitEnd(std::move(get)));
    DropCopies();
    const uint64_t served = Number(clients_[2], "pins_of_peers_total");
    asked_ = steady_clock::now();
    ExpectRight(clients_[0].Get(Id(name), kDeadline));
    EXPECT_GT(Number(clients_[2], "pins_of_peers_total"), served);
    DropCopies();
  }

  // After all is well again.
  void ExpectFarServes() {
    for (const Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
      const ObjectId id = Id(absl::StrCat("after", static_cast<int>(protocol)));
      const std::vector<uint8_t> data = Pattern(500'000, 4);
      ASSERT_TRUE(clients_[1].Put(id, data).ok());
      const Got got = clients_[0].Get(id, kDeadline, {protocol});
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(daemon::Same(got->data(), data));
    }
    DropCopies();
  }

  void EndNode(size_t index) {
    nodes_[index]->Kill();
    nodes_[index].reset();
  }

  void SetMtu(int bytes) {
    for (const std::string& net_device : wire_) {
      const absl::Status status = faults::Run({"ip", "link", "set", net_device, "mtu", absl::StrCat(bytes)});
      EXPECT_TRUE(status.ok()) << status;
    }
  }

  daemon::ShortFolder folder_;
  Strings rdma_devices_;
  Strings wire_;                                     // their net devices
  Usage before_;                                     // of all processes, before there was one of ours
  Usage usage_;                                      // of the getter, before the fault
  std::string descriptors_;                          // and what they are
  std::vector<std::unique_ptr<TokdProcess>> nodes_;  // null: killed
  std::vector<Client> clients_;
  steady_clock::time_point asked_;
};

struct Disturbance {
  const char* name;
  const char* netem;
};

class DisturbedWireTest : public FaultsTest, public testing::WithParamInterface<Disturbance> {};

INSTANTIATE_TEST_SUITE_P(
    Netem, DisturbedWireTest,
    testing::Values(Disturbance{"LossOfOneInAThousand", "loss 0.1%"}, Disturbance{"LossOfOneInAHundred", "loss 1%"},
                    Disturbance{"LossOfOneInTwenty", "loss 5%"}, Disturbance{"Duplicates", "duplicate 1%"},
                    Disturbance{"Disorder", "delay 1ms reorder 99%"}, Disturbance{"Corruption", "corrupt 1%"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(DisturbedWireTest, ObjectsOfAllSizesArriveByEachProtocol) {
  const auto netem = Netem::Start(wire_, GetParam().netem);
  ASSERT_TRUE(netem.ok()) << netem.status();
  for (const Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    for (const size_t size : {size_t{1}, size_t{5'000}, size_t{200'000}, size_t{2} << 20}) {
      const ObjectId id = Id(absl::StrCat(static_cast<int>(protocol), " ", size));
      const std::vector<uint8_t> data = Pattern(size, static_cast<uint8_t>(size));
      ASSERT_TRUE(clients_[1].Put(id, data).ok());
      const Got got = clients_[0].Get(id, kDeadline, {protocol});
      ASSERT_TRUE(got.ok()) << size << ": " << got.status();
      EXPECT_TRUE(daemon::Same(got->data(), data)) << size;
    }
  }
}

TEST_F(FaultsTest, ACutOfHalfASecondIsSurvived) {
  PutLarge("large", /*also_near=*/false);
  auto get = GetFromFar("large");
  auto cut = Netem::Start(wire_, "loss 100%");
  ASSERT_TRUE(cut.ok()) << cut.status();
  Last(base::Milliseconds(500));
  cut->reset();
  ExpectRight(AwaitEnd(std::move(get)));
  ExpectFarServes();
}

TEST_F(FaultsTest, AWireCutForGoodMakesTheNextHolderServe) {
  PutLarge("large", /*also_near=*/true);
  auto get = GetFromFar("large");
  auto cut = Netem::Start(wire_, "loss 100%");
  ASSERT_TRUE(cut.ok()) << cut.status();
  ExpectNearServes("large", std::move(get));
  cut->reset();
}

// Soft-RoCE whose link goes down while connections say goodbye hears no rdma_cm any more
// (docs/verbs.md).
class FlappingLinkTest : public FaultsTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const Strings devices = testing_support::TestDevices();
    if (!devices.empty() && !absl::StartsWith(devices[0], "ibv:rxe") && GetParam() == absl::string_view("tcp")) {
      GTEST_SKIP() << "skipped: --cm tcp is for RoCE and InfiniBand";
    }
    FaultsTest::SetUp();
  }
  const char* ConnectionManager() const override { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(By, FlappingLinkTest, testing::Values("rdma", "tcp"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(FlappingLinkTest, AFlappingLinkIsUsedAgain) {
  PutLarge("large", /*also_near=*/false);
  auto get = GetFromFar("large");
  ASSERT_EQ(faults::Run({"ip", "link", "set", wire_[1], "down"}), absl::OkStatus());
  Last(base::Milliseconds(300));
  ASSERT_EQ(faults::Run({"ip", "link", "set", wire_[1], "up"}), absl::OkStatus());
  ExpectRight(AwaitEnd(std::move(get)));
  ExpectFarServes();
}

// The packets of connections that stand are too large then, and vanish without a word.
TEST_F(FaultsTest, AnMtuTooLargeForTheLinkCausesNoStall) {
  PutLarge("large", /*also_near=*/false);
  auto get = GetFromFar("large");
  SetMtu(1500);
  const Got got = AwaitEnd(std::move(get));
  if (got.ok()) {  // over a new connection with smaller packets
    ExpectRight(got);
  } else {
    EXPECT_EQ(got.status().code(), StatusCode::kDeadlineExceeded) << got.status();
    EXPECT_FALSE(got.status().message().empty());
  }
  SetMtu(9000);
  ExpectFarServes();
}

class KilledHolderTest : public FaultsTest, public testing::WithParamInterface<Protocol> {};

INSTANTIATE_TEST_SUITE_P(By, KilledHolderTest, testing::Values(Protocol::kEager, Protocol::kRead, Protocol::kWrite),
                         [](const auto& tested) {
                           return tested.param == Protocol::kEager  ? "Eager"
                                  : tested.param == Protocol::kRead ? "Read"
                                                                    : "Write";
                         });

TEST_P(KilledHolderTest, TheNextHolderServes) {
  PutLarge("large", /*also_near=*/true);
  auto get = GetFromFar("large", GetParam());
  EndNode(1);
  ExpectNearServes("large", std::move(get));
}

TEST_F(FaultsTest, AGetFromAKilledOnlyHolderNamesTheObstacle) {
  PutLarge("large", /*also_near=*/false);
  auto get = GetFromFar("large");
  EndNode(1);
  Got got = AwaitEnd(std::move(get));
  if (got.ok()) {  // all of it had come already; the next get finds nobody
    ExpectRight(got);
    got = Status(StatusCode::kInternal, "dropped");
    DropCopies();
    asked_ = steady_clock::now();
    got = clients_[0].Get(Id("large"), kDeadline);
  }
  EXPECT_TRUE(got.status().code() == StatusCode::kDeadlineExceeded || got.status().code() == StatusCode::kNotFound)
      << got.status();
  EXPECT_FALSE(got.status().message().empty());
}

// The kernel waits with the removal until the last program has let go of the device.
TEST_F(FaultsTest, ARemovedDeviceMakesTheNextHolderServe) {
  const std::string type = rdma_devices_[1].substr(0, rdma_devices_[1].find_first_of("0123456789"));
  if (type == "siw") {
    GTEST_SKIP() << "skipped: over iWARP librdmacm keeps every device open in each program, so a removal waits for the "
                    "end of all of them";
  }
  PutLarge("large", /*also_near=*/true);
  auto get = GetFromFar("large");
  auto removal = std::async(std::launch::async, [this] {
    return faults::Run({"rdma", "link", "delete", rdma_devices_[1]});
  });
  ExpectNearServes("large", std::move(get));
  const daemon::Ended ended = nodes_[1]->Terminate();
  EXPECT_EQ(ended.status.code, 0) << ended.status.ToString() << "\n" << ended.text;
  nodes_[1].reset();
  EXPECT_EQ(removal.get(), absl::OkStatus());
  EXPECT_EQ(faults::Run({"rdma", "link", "add", rdma_devices_[1], "type", type, "netdev", wire_[1]}), absl::OkStatus());
}

}  // namespace
}  // namespace tokamak::faults
