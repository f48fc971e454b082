// An address that has moved in the GID table is found where it stands when a connection is made;
// one that has gone is named.
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "lib/base/log.h"
#include "tests/faults/command.h"
#include "tests/faults/wire.h"
#include "tests/verbs/ibv/connections_fixture.h"

namespace tokamak::verbs::ibv {
namespace {

// Another address takes the place in the GID table that ours had, which comes back behind it.
// Changes the network of the machine that it runs on: for the lab's guest, and RoCE.
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
    if (before_ < 0) return;
    if (!other_.empty()) Ip("del", other_);
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

TEST_P(MovedAddressTest, MessagesPassFromTheMovedAddress) {
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

// Keeps what is logged of `address` while it lives.
class HeardOf final : private base::LogSink {
 public:
  explicit HeardOf(std::string address) : address_(std::move(address)), before_(base::SetLogSink(this)) {}
  ~HeardOf() override { base::SetLogSink(before_); }

  std::vector<std::string> Lines() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }

 private:
  void Write(const base::LogLine& line) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string text(line.text);
    if (absl::StartsWith(text, address_)) lines_.push_back(std::move(text));
  }

  const std::string address_;
  base::LogSink* const before_;
  std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

// Only rdma_cm needs it.
class GoneAddressTest : public MovedAddressTest {};
INSTANTIATE_TEST_SUITE_P(RealVerbs, GoneAddressTest, testing::Values(Manager{"rdma", Exchange::kRdmaCm}),
                         [](const auto& test) { return test.param.name; });

TEST_P(GoneAddressTest, AGoneAddressIsReportedOnceWithItsRemedyAndAgainWhenItIsBack) {
  before_ = IndexOfOurs();
  Worker asking(*devices_[0], "ask"), accepting(*devices_[1], "accept");
  auto listener = Listen(accepting, [](std::unique_ptr<ConnectionRequest>) {});  // rejected
  ASSERT_NE(listener, nullptr);
  HeardOf heard(devices_[0]->address().ToString());
  const auto ask = [&] {
    End end(asking);
    Connect(end, listener->address());
    EXPECT_TRUE(Await([&] { return end.over.load(); }));
  };
  ask();
  EXPECT_TRUE(heard.Lines().empty());
  Ip("del", ours_);
  taken_away_ = true;
  ASSERT_TRUE(Await([&] { return IndexOfOurs() == -1; }));
  ask();
  ask();
  ASSERT_EQ(heard.Lines().size(), 1u);
  EXPECT_TRUE(absl::StrContains(heard.Lines()[0], "ip address add")) << heard.Lines()[0];
  Ip("add", ours_);
  taken_away_ = false;
  ASSERT_TRUE(Await([&] { return IndexOfOurs() == before_; }));
  ask();
  ask();
  ASSERT_EQ(heard.Lines().size(), 2u);
  EXPECT_TRUE(absl::StrContains(heard.Lines()[1], "is back")) << heard.Lines()[1];
  accepting.CallOn([&] { listener.reset(); });
}

}  // namespace
}  // namespace tokamak::verbs::ibv
