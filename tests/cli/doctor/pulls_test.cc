#include "lib/cli/doctor/pulls.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/random.h"
#include "lib/cli/doctor/device_checks.h"
#include "lib/transport/messages/hello.h"
#include "lib/verbs/soft/device.h"
#include "sim/network/loopback_fabric.h"
#include "tests/cli/doctor/expect_finding.h"
#include "tests/cli/doctor/sieve_fabric.h"

namespace tokamak::cli::doctor {
namespace {

using Steps = std::vector<std::string>;

constexpr base::Duration kShort = base::Milliseconds(500);  // for what never comes

class PullsTest : public testing::Test {
 protected:
  PullsTest() : here_(Open("10.0.0.1")), there_(Open("10.0.0.2")) {
    plan_.calls = 20;
    plan_.batches = 2;
  }

  std::unique_ptr<verbs::soft::SoftDevice> Open(const std::string& address) {
    verbs::soft::DeviceOptions options;
    options.address = *verbs::Address::Parse(address);
    return *verbs::soft::OpenSoftDevice(loop_, fabric_, trace_, options);
  }

  std::unique_ptr<Station> Make(verbs::Device& device) {
    auto made = Station::Make(loop_, device, kObjectsAtOnce, plan_.patience,
                              [this](absl::string_view step) { known_.probe.steps.emplace_back(step); });
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }

  std::unique_ptr<Station> Lend(verbs::Device& device) {
    auto lender = Make(device);
    EXPECT_TRUE(lender->Lend(device.address(), {"soft:there", 4096, 9000}).ok());
    return lender;
  }

  // The outcome is in known_.
  absl::Status Try(const verbs::Address& lender) {
    known_ = DeviceCase();
    known_.name = "soft:here";
    known_.peer = lender.ToString();
    known_.probe.active_mtu = 4096;
    const auto station = Make(*here_);
    const auto on_step = [this](absl::string_view step) { known_.probe.steps.emplace_back(step); };
    known_.probe.failure = TryPulls(loop_, *station, lender, plan_, on_step, known_.probe.figures);
    known_.probe.finished = known_.probe.failure.ok();
    return known_.probe.failure;
  }

  os::EpollLoop loop_;
  sim::LoopbackFabric network_;
  SieveFabric fabric_{network_};
  base::NoTrace trace_;
  PullPlan plan_;
  DeviceCase known_;
  std::unique_ptr<verbs::soft::SoftDevice> here_;
  std::unique_ptr<verbs::soft::SoftDevice> there_;
};

TEST(MeasuringDetectionTest, OneProcessorIsNotSpunOn) {
  EXPECT_EQ(MeasuringDetection(1).mode, os::Detection::Mode::kEvent);
  EXPECT_EQ(MeasuringDetection(2).mode, os::Detection::Mode::kAdaptive);
}

// On a thread of its own, which may run on one processor only.
TEST(MeasuringDetectionTest, TheProcessorsAreThoseThatThisThreadMayUse) {
  unsigned int usable = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    usable = UsableProcessors();
  }).join();
  EXPECT_EQ(usable, 1u);
}

TEST_F(PullsTest, ADevicePullsFromItselfAndFromAnother) {
  for (verbs::Device* lends : {here_.get(), there_.get()}) {
    const auto lender = Lend(*lends);
    ASSERT_TRUE(Try(lender->endpoint().address()).ok()) << known_.probe.failure;
    const PullFigures& figures = known_.probe.figures;
    EXPECT_GT(figures.connected_ns, 0);
    EXPECT_GT(figures.half_round_trip_ns, 0);
    EXPECT_EQ(figures.calls, 20u);
    EXPECT_EQ(figures.peer.device, "soft:there");
    EXPECT_EQ(figures.peer.netdev_mtu, 9000u);
    EXPECT_EQ(figures.rates.size(), 3u);
    for (const auto& [name, rate] : figures.rates) EXPECT_GT(rate, 0) << name;
    EXPECT_EQ(known_.probe.steps, (Steps{"domain", "memory", "endpoint", "connect", "call of 64 B", "eager of 64 B",
                                         "eager of 256 KiB", "read of 256 KiB", "write of 256 KiB"}));
    EXPECT_EQ(lender->endpoint().counters().serves_ok, 1u + 3 * kObjectsAtOnce * 2u);
  }
}

// Each stops at a step of its own, and has a remedy of its own.
TEST_F(PullsTest, EachFaultOfTheNetworkIsAFindingOfItsOwn) {
  const struct {
    Loses loses;
    const char* step;
    const char* check;
    const char* remedy;
  } rows[] = {
      {LosesAll, "connect", "connection", "does ping reach that address"},
      {LosesAllButManagement, "call of 64 B", "transfers", "it connects, but carries nothing"},
      {LosesLarge, "eager of 256 KiB", "transfers", "a smaller MTU than both ends"},
      {LosesReads, "read of 256 KiB", "transfers", "messages pass, READ does not"},
      {LosesWrites, "write of 256 KiB", "transfers", "messages and READ pass, WRITE does not"},
  };
  plan_.patience = kShort;
  for (const auto& row : rows) {
    fabric_.set_loses(LosesNothing);
    const auto lender = Lend(*there_);
    fabric_.set_loses(row.loses);
    EXPECT_FALSE(Try(lender->endpoint().address()).ok());
    EXPECT_EQ(known_.probe.FailedStep(), row.step) << known_.probe.failure;
    ExpectFinding(CheckPeer(known_), row.check, Verdict::kFailed, row.step, row.remedy);
  }
}

TEST_F(PullsTest, NobodyWhoListensIsToldApartFromAPeerThatIsNotReached) {
  verbs::Address nobody = there_->address();
  nobody.port = 4711;
  EXPECT_FALSE(Try(nobody).ok());
  ExpectFinding(CheckPeer(known_), "connection", Verdict::kFailed, "nobody listens", "run tok doctor --listen at");
}

TEST_F(PullsTest, AStrangerWhoAcceptsIsNoDoctor) {
  const auto stranger = Lend(*there_);
  stranger->endpoint().SetCallHandler([](absl::Span<const uint8_t>, const transport::Reply& reply) {
    reply(std::array<uint8_t, 20>{});
    return nullptr;
  });
  EXPECT_FALSE(Try(stranger->endpoint().address()).ok());
  EXPECT_EQ(known_.probe.FailedStep(), "call of 64 B");
  ExpectFinding(CheckPeer(known_), "transfers", Verdict::kFailed, "not that of a tok doctor",
                "the same version of tok");
}

TEST_F(PullsTest, APeerOfAnotherVersionIsNamed) {
  transport::Hello hello;
  hello.version = transport::kProtocolVersion + 1;
  std::array<uint8_t, transport::kHelloSize> words;
  transport::EncodeHello(hello, absl::MakeSpan(words));
  const auto refuse = [&](std::unique_ptr<verbs::ConnectionRequest> request) { request->Reject(words); };
  const auto listener = *there_->connection_manager().Listen(loop_, there_->address(), refuse);
  EXPECT_FALSE(Try(listener->address()).ok());
  ExpectFinding(CheckPeer(known_), "connection", Verdict::kFailed, "the peer speaks transport version",
                "the same version of tok");
}

TEST_F(PullsTest, BytesThatArriveDamagedAreFound) {
  const auto lender = Lend(*there_);
  lender->memory()[1000] ^= 1;
  EXPECT_EQ(Try(lender->endpoint().address()).code(), absl::StatusCode::kDataLoss);
  ExpectFinding(CheckPeer(known_), "transfers", Verdict::kFailed,
                "'eager of 256 KiB' failed: the bytes of an object differ from byte 1000 on", "damages bytes");
}

TEST_F(PullsTest, ALenderThatGoesMidwayIsNoticed) {
  plan_.calls = 1000000;
  plan_.spend = base::Seconds(30);
  auto lender = Lend(*there_);
  const verbs::Address address = lender->endpoint().address();
  const base::Timer leave = loop_.RunAfter(base::Milliseconds(100), [&] { lender.reset(); });
  EXPECT_FALSE(Try(address).ok());
  EXPECT_EQ(known_.probe.FailedStep(), "call of 64 B");
}

TEST_F(PullsTest, ObjectsThatNoDoctorNamesAreNotLent) {
  const auto lender = Lend(*there_);
  for (const base::ObjectId& id : {base::ObjectId(), base::ObjectId::FromName("another")}) {
    absl::Status pinned;
    bool done = false;
    lender->Pin({id, {}}, 1, [&](const absl::StatusOr<transport::PinnedObject>& object) {
      pinned = object.status();
      done = true;
    });
    EXPECT_FALSE(done) << "never inside the call";
    EXPECT_TRUE(loop_.RunUntil([&] { return done; }, loop_.Now() + base::Seconds(10)));
    EXPECT_EQ(pinned.code(), absl::StatusCode::kNotFound);
  }
}

TEST(DeviceWordsTest, OnlyWordsOfADoctorAreAccepted) {
  const std::string whole = DeviceWords{"ibv:rxe1", 4096, 9000}.Encode();
  const auto words = DeviceWords::Decode(whole);
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_EQ(words->device, "ibv:rxe1");
  EXPECT_EQ(words->active_mtu, 4096u);
  EXPECT_EQ(words->netdev_mtu, 9000u);
  for (const std::string& name : {std::string("ibv:\x1b[2J"), std::string("two words"), std::string()}) {
    EXPECT_FALSE(DeviceWords::Decode(DeviceWords{name, 1, 1}.Encode()).ok()) << testing::PrintToString(name);
  }
  EXPECT_FALSE(DeviceWords::Decode(whole + std::string(200, 'x')).ok());
  EXPECT_EQ(DeviceWords::Decode("TKD2" + whole.substr(4)).status().code(), absl::StatusCode::kFailedPrecondition);
  base::Random random(1);
  for (int round = 0; round < 1000; ++round) {
    std::string text = whole.substr(0, random.Below(whole.size() + 1));
    if (!text.empty()) text[random.Below(text.size())] = static_cast<char>(random.Below(256));
    DeviceWords::Decode(text).IgnoreError();  // and breaks nothing
  }
}

}  // namespace
}  // namespace tokamak::cli::doctor
