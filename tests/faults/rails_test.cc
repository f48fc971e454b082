// Two daemons with two devices each, joined by two cables: large transfers go over both, and go on
// when one of the cables fails.
//
// Rail 0 is the cable that the machine has, rail 1 one that the test lays beside it; connections
// are made by rdma_cm, and over TCP. For the lab's guest.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/verbs/ibv/device.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "tests/daemon/tokd_process.h"
#include "tests/faults/command.h"
#include "tests/faults/wire.h"
#include "tests/support/test_devices.h"

namespace tokamak::faults {
namespace {

using daemon::Eventually;
using daemon::Number;
using daemon::Pattern;
using daemon::TokdProcess;
using Got = Result<Buffer>;
using Strings = std::vector<std::string>;

constexpr size_t kLarge = 24 << 20;  // long enough in transfer to be caught in the middle
constexpr std::chrono::seconds kDeadline(60);
constexpr int kTries = 20;

ObjectId Id(const std::string& name) { return ObjectId::FromName(name); }

const std::vector<uint8_t>& Large() {
  static const std::vector<uint8_t> bytes = Pattern(kLarge, 9);
  return bytes;
}

class RailsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Strings devices = testing_support::TestDevices();
    if (devices.size() < 2 || !absl::StartsWith(devices[0], "ibv:rxe")) {
      GTEST_SKIP() << "skipped: TOKAMAK_TEST_DEVICES names no two Soft-RoCE devices; run it in the lab";
    }
    for (const std::string& device : devices) {
      const auto net_device = NetDeviceOf(std::string(absl::StripPrefix(device, "ibv:")));
      ASSERT_TRUE(net_device.ok()) << net_device.status();
      if (absl::Status s = CheckVirtual(*net_device); !s.ok()) GTEST_SKIP() << "skipped: " << s.message();
      primary_.push_back(*net_device);
    }
    auto cable = Cable::Lay("rxe", {"rail0", "rxe_rail0", "10.0.1.1/24"}, {"rail1", "rxe_rail1", "10.0.1.2/24"});
    ASSERT_TRUE(cable.ok()) << cable.status();
    side_cable_ = *std::move(cable);
    ASSERT_TRUE(Eventually([] { return OpensAt("ibv:rxe_rail0", "10.0.1.1"); }));
    ASSERT_TRUE(Eventually([] { return OpensAt("ibv:rxe_rail1", "10.0.1.2"); }));
    for (const size_t i : {size_t{0}, size_t{1}}) {
      Strings flags = {"--memory", "80MiB",    "--cm",
                       GetParam(), "--device", absl::StrCat(devices[i], ",ibv:rxe_rail", i)};
      if (i != 0) {
        for (const std::string& flag : daemon::DirectoryOfNode1()) flags.push_back(flag);
      }
      nodes_.push_back(std::make_unique<TokdProcess>(folder_, static_cast<int>(i) + 1, flags));
      ASSERT_NO_FATAL_FAILURE(nodes_.back()->AwaitReady());
      clients_.push_back(nodes_.back()->Connect());
    }
    ASSERT_TRUE(clients_[1].Put(Id("large"), Large()).ok());
  }

  void TearDown() override {
    for (size_t i = 0; i < clients_.size(); ++i) {
      for (const char* number : {"pins_of_peers", "pulls_running", "store_quarantined_bytes"}) {
        EXPECT_TRUE(Eventually([&] { return Number(clients_[i], number) == 0; })) << "node" << i + 1 << ": " << number;
      }
    }
    clients_.clear();
    for (auto& node : nodes_) {
      const daemon::Ended ended = node->Terminate();
      EXPECT_TRUE(ended.status.code == 0 && !HasFailure()) << ended.status.ToString() << "\n" << ended.text;
    }
  }

  // Its port is up, and the kernel has told it of its net device's address.
  static bool OpensAt(const char* name, const char* address) {
    verbs::ibv::DeviceOptions options;
    options.name = *verbs::ibv::ParseDeviceName(name);
    const auto device = verbs::ibv::OpenIbvDevice(options);
    return device.ok() && (*device)->address().ip == verbs::Address::Parse(address)->ip;
  }

  static void SetLink(const std::string& net_device, const char* state) {
    EXPECT_EQ(faults::Run({"ip", "link", "set", net_device, state}), absl::OkStatus());
  }

  void DropCopies() { EXPECT_TRUE(clients_[0].Evict(UINT64_MAX).ok()); }

  Got Get(Protocol protocol) {
    DropCopies();
    Client client = nodes_[0]->Connect();
    return client.Get(Id("large"), kDeadline, {protocol});
  }

  static void ExpectRight(const Got& got) {
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->data().size(), kLarge);
    EXPECT_EQ(std::memcmp(got->data().data(), Large().data(), kLarge), 0);
  }

  // Node 1 reads over the rail, node 2 writes.
  uint64_t BytesOf(int rail) {
    const std::string name = absl::StrCat("engine1_rail", rail, "_bytes_total");
    return Number(clients_[0], name) + Number(clients_[1], name);
  }
  uint64_t Both(const char* name) { return Number(clients_[0], name) + Number(clients_[1], name); }

  // Gets of the large object use both rails from some moment on: rails join when their connection
  // is up.
  void AwaitBothRails() {
    EXPECT_TRUE(Eventually([&] {
      const uint64_t before = BytesOf(1);
      ExpectRight(Get(Protocol::kRead));
      return BytesOf(1) > before;
    })) << "no transfer goes over rail 1";
  }

  // Starts to get the large object, and returns when some of its bytes have gone over that rail.
  std::future<Got> CatchOnRail(int rail, Protocol protocol) {
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const uint64_t before = BytesOf(rail);
      auto get = std::async(std::launch::async, [this, protocol] { return Get(protocol); });
      while (get.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        if (BytesOf(rail) > before) return get;
      }
      ExpectRight(get.get());
    }
    ADD_FAILURE() << "no transfer was caught in the middle";
    return std::async(std::launch::deferred, [] { return Got(Status(StatusCode::kInternal, "not asked")); });
  }

  void ExpectRailIsLost(uint64_t before) {
    EXPECT_TRUE(Eventually([&] { return Both("engine1_rails_lost_total") >= before + 2; })) << "one on each side";
  }
  void ExpectNoOtherTrouble() {
    EXPECT_EQ(Both("engine1_connections_lost_total"), 0u);
    EXPECT_EQ(Number(clients_[0], "pull_attempts_failed_total"), 0u);
  }

  daemon::ShortFolder folder_;
  Strings primary_;  // net devices of rail 0
  std::unique_ptr<Cable> side_cable_;
  std::vector<std::unique_ptr<TokdProcess>> nodes_;
  std::vector<Client> clients_;
};

INSTANTIATE_TEST_SUITE_P(ConnectedBy, RailsTest, testing::Values("rdma", "tcp"),
                         [](const auto& tested) { return std::string(tested.param); });

class RailDownTest : public RailsTest {};

INSTANTIATE_TEST_SUITE_P(ConnectedBy, RailDownTest, testing::Values("rdma", "tcp"),
                         [](const auto& tested) { return std::string(tested.param); });

// The link stays down: a rxe whose own interface is down when its connections say goodbye hears
// nothing more (docs/verbs.md).
TEST_P(RailDownTest, ATransferGoesOnWithoutTheRailWhoseLinkIsDown) {
  AwaitBothRails();
  auto get = CatchOnRail(1, Protocol::kRead);
  SetLink("rail0", "down");
  ExpectRight(get.get());
  ExpectRailIsLost(/*before=*/0);
  for (const Protocol protocol : {Protocol::kRead, Protocol::kWrite}) ExpectRight(Get(protocol));
  ExpectNoOtherTrouble();
}

TEST_P(RailsTest, ARailWhoseCableIsCutDropsOutAndRejoins) {
  AwaitBothRails();
  for (const Protocol protocol : {Protocol::kRead, Protocol::kWrite}) {
    const uint64_t lost = Both("engine1_rails_lost_total");
    auto get = CatchOnRail(1, protocol);
    auto cut = Netem::Start({"rail0", "rail1"}, "loss 100%");
    ASSERT_TRUE(cut.ok()) << cut.status();
    ExpectRight(get.get());
    ExpectRight(Get(protocol));  // where the first was over before the cut, this one meets it
    ExpectRailIsLost(lost);
    cut->reset();
    AwaitBothRails();
  }
  ExpectNoOtherTrouble();
}

// Messages go over the primary rail, so the connection ends with it; the next has the other rail
// for it.
TEST_P(RailsTest, TheNextConnectionTakesAnotherRailWhenThePrimaryOneIsCut) {
  AwaitBothRails();
  auto get = CatchOnRail(0, Protocol::kRead);
  auto cut = Netem::Start(primary_, "loss 100%");
  ASSERT_TRUE(cut.ok()) << cut.status();
  ExpectRight(get.get());
  const uint64_t before = BytesOf(1);
  ExpectRight(Get(Protocol::kRead));
  EXPECT_GE(BytesOf(1), before + kLarge) << "all of it";
}

}  // namespace
}  // namespace tokamak::faults
