// DCQCN: the rate after each of its events, worked out by hand, and the gaps that it makes on a
// wire.
#include <cmath>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "lib/base/random.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using testing::ElementsAre;
using Op = PacketOpcode;

constexpr uint64_t kLine = 100'000'000'000;
constexpr base::Duration kTimer = base::Microseconds(55);

base::Time At(base::Duration time) { return base::Time::FromPicoseconds(1'000'000'000'000) + time; }

class DcqcnTest : public testing::Test {
 protected:
  // Bits per second at a time, in which nothing is sent.
  uint64_t RateAt(base::Duration time) {
    flow_->NextSend(At(time));
    return flow_->rate();
  }
  void Notify(base::Duration time) { flow_->OnNotification(At(time)); }
  void Send(base::Duration time, uint32_t bytes, int packets) {
    for (int i = 0; i < packets; ++i) flow_->OnSend(At(time), bytes);
  }

  DcqcnParameters parameters_;
  std::unique_ptr<Congestion> flow_ = MakeDcqcn({}, 64, kLine);
};

TEST_F(DcqcnTest, NothingIsHeldBackBeforeTheFirstNotification) {
  EXPECT_TRUE(flow_->paces());
  EXPECT_TRUE(flow_->reacts_to_marks());
  EXPECT_EQ(flow_->Window(), 64u);
  Send({}, 4178, 100);
  EXPECT_EQ(flow_->NextSend(At({})), At({}));
  EXPECT_EQ(flow_->rate(), 0u);
}

// Alpha is 1 at first: half of the rate goes, and comes back half of what is missing at a time.
TEST_F(DcqcnTest, TheStaircaseAfterOneNotification) {
  Notify({});
  EXPECT_EQ(flow_->rate(), 50'000'000'000u);
  EXPECT_EQ(RateAt(kTimer - base::Nanoseconds(1)), 50'000'000'000u);
  std::vector<uint64_t> stairs;
  for (int round = 1; round <= 9; ++round) stairs.push_back(RateAt(kTimer * round));
  EXPECT_THAT(stairs, ElementsAre(75'000'000'000u, 87'500'000'000u, 93'750'000'000u, 96'875'000'000u, 98'437'500'000u,
                                  99'218'750'000u, 99'609'375'000u, 99'804'687'500u, 0u));
}

// The target is 50 Gb/s, which five rounds leave alone; then it grows by 40 Mb/s.
TEST_F(DcqcnTest, AfterFiveRoundsTheTargetGrowsStepByStep) {
  Notify({});
  Notify({});
  EXPECT_EQ(flow_->rate(), 25'000'000'000u);
  EXPECT_EQ(RateAt(kTimer * 1), 37'500'000'000u);
  EXPECT_EQ(RateAt(kTimer * 5), 49'218'750'000u);
  EXPECT_EQ(RateAt(kTimer * 6), 49'629'375'000u);  // (49.21875 + 50.04) / 2
  EXPECT_EQ(RateAt(kTimer * 7), 49'854'687'500u);  // (49.629375 + 50.08) / 2
}

TEST_F(DcqcnTest, TheByteCounterRaisesTheRateAsTheTimerDoes) {
  Notify({});
  Send({}, 1'000'000, 9);
  EXPECT_EQ(flow_->rate(), 50'000'000'000u);
  Send({}, 1'000'000, 1);
  EXPECT_EQ(flow_->rate(), 75'000'000'000u);
  Send({}, 1'000'000, 10);
  EXPECT_EQ(flow_->rate(), 87'500'000'000u);
}

TEST_F(DcqcnTest, OnceTimerAndByteCounterAreBothPastRecoveryTheTargetGrowsFaster) {
  Notify({});
  Notify({});
  const base::Duration now = kTimer * 6;
  EXPECT_EQ(RateAt(now), 49'629'375'000u);
  // Five rounds of the byte counter: the target goes from 50.04 to 50.24 Gb/s.
  Send(now, 1'000'000, 50);
  EXPECT_EQ(flow_->rate(), 50'188'417'968u);
  // The sixth: to 50.44.
  Send(now, 1'000'000, 10);
  EXPECT_EQ(flow_->rate(), 50'314'208'984u);
}

TEST_F(DcqcnTest, ANotificationBeginsTheRecoveryAnew) {
  Notify({});
  EXPECT_EQ(RateAt(kTimer * 3), 93'750'000'000u);
  Send(kTimer * 3, 1'000'000, 9);
  Notify(kTimer * 3);
  const uint64_t cut = flow_->rate();
  Send(kTimer * 3, 1'000'000, 9);
  EXPECT_EQ(flow_->rate(), cut) << "the byte counter began anew, too";
  EXPECT_EQ(RateAt(kTimer * 4 - base::Nanoseconds(1)), cut);
  EXPECT_EQ(RateAt(kTimer * 4), cut / 2 + 93'750'000'000u / 2);
}

// Seen by how much the next notification cuts.
TEST_F(DcqcnTest, AlphaDecaysWhileNothingIsMarked) {
  Notify({});
  const double alpha = std::pow(255.0 / 256, 1000);
  EXPECT_EQ(RateAt(kTimer * 1000), 0u);
  Notify(kTimer * 1000);
  EXPECT_NEAR(static_cast<double>(flow_->rate()), 1e11 * (1 - alpha / 2), 10);
  // And grows towards 1 with each notification.
  const double next = alpha * 255 / 256 + 1.0 / 256;
  const auto before = static_cast<double>(flow_->rate());
  Notify(kTimer * 1000);
  EXPECT_NEAR(static_cast<double>(flow_->rate()), before * (1 - next / 2), 10);
}

TEST_F(DcqcnTest, TheRateHasAMinimum) {
  for (int i = 0; i < 1000; ++i) Notify({});
  EXPECT_EQ(flow_->rate(), 100'000'000u);
}

TEST_F(DcqcnTest, ANewConnectionIsNotLimited) {
  Notify({});
  flow_->Reset();
  EXPECT_EQ(flow_->rate(), 0u);
  Notify({});
  EXPECT_EQ(flow_->rate(), 50'000'000'000u);
}

TEST_F(DcqcnTest, PacketsAreAsFarApartAsTheRateAsks) {
  Notify({});
  EXPECT_LE(flow_->NextSend(At({})) - At({}), base::Duration()) << "nothing was sent yet";
  Send({}, 1000, 1);  // 8,000 bits at 50 Gb/s
  EXPECT_EQ(flow_->NextSend(At({})) - At({}), base::Nanoseconds(160));
  Send(base::Nanoseconds(160), 1000, 1);
  EXPECT_EQ(flow_->NextSend(At({})) - At({}), base::Nanoseconds(320));
  Send(base::Nanoseconds(1000), 1000, 1);
  EXPECT_EQ(flow_->NextSend(At({})) - At({}), base::Nanoseconds(1160)) << "what was not used is lost";
}

TEST_F(DcqcnTest, ALateTimerIsPartlyMadeUpFor) {
  parameters_.catch_up = base::Nanoseconds(500);
  flow_ = MakeDcqcn(parameters_, 64, kLine);
  Notify({});
  Send({}, 1000, 4);  // three of them within the 500 ns that were not used before
  EXPECT_EQ(flow_->NextSend(At({})) - At({}), base::Nanoseconds(140));
  Send(base::Nanoseconds(400), 1000, 1);  // could have gone at 140
  EXPECT_EQ(flow_->NextSend(At({})) - At({}), base::Nanoseconds(300));
  Send(base::Nanoseconds(2000), 1000, 1);
  EXPECT_EQ(flow_->NextSend(At({})) - At({}), base::Nanoseconds(1660)) << "500 ns and no more";
}

TEST_F(DcqcnTest, AGivenLineRateIsKeptWithoutNotifications) {
  parameters_.line_rate = 10'000'000'000;
  flow_ = MakeDcqcn(parameters_, 64, kLine);
  Send({}, 1000, 1);
  EXPECT_EQ(flow_->NextSend(At({})) - At({}), base::Nanoseconds(800));
}

// Whatever happens, in whatever order.
TEST_F(DcqcnTest, TheRateNeverExceedsTheLine) {
  base::Random random(7);
  base::Duration now;
  for (int i = 0; i < 20000; ++i) {
    now = now + base::Nanoseconds(static_cast<int64_t>(random.Below(30000)));
    if (random.Chance(0.05)) Notify(now);
    const base::Time before = std::max(flow_->NextSend(At(now)), At(now));
    Send(now, 4178, 1);
    if (flow_->rate() == 0) continue;
    ASSERT_LE(flow_->rate(), kLine);
    ASSERT_GE(flow_->rate(), 100'000'000u);
    ASSERT_GE(flow_->NextSend(At(now)) - before, base::Duration::Picoseconds(4178 * 80 - 1));
  }
}

// On a wire.
class PacingTest : public OneNic {
 protected:
  PacingTest() {
    device_options_.congestion = CongestionControl::kDcqcn;
    fabric_.line_rate = 1'000'000'000;
  }
  std::vector<int64_t> Gaps() {
    std::vector<int64_t> gaps;
    for (size_t i = 1; i < fabric_.sent.size(); ++i) {
      gaps.push_back((fabric_.sent[i].time - fabric_.sent[i - 1].time).picoseconds());
    }
    fabric_.sent.clear();
    return gaps;
  }
};

TEST_F(PacingTest, UnlimitedPacketsLeaveAtOnce) {
  Open();
  Post(Opcode::kSend, 1, Piece(0, 5 * kMtu));
  Run();
  EXPECT_EQ(fabric_.sent[0].packet.ecn, Ecn::kCapable0);
  EXPECT_THAT(Gaps(), ElementsAre(0, 0, 0, 0));
}

// 500 Mb/s: 16 ns for each byte of 256 + 82, and 16 more in the first.
TEST_F(PacingTest, RequestsLeaveAtTheRate) {
  Open();
  Arrive({FromPeer(Op::kCongestionNotification, 0)});
  EXPECT_EQ(counters().rate, 500'000'000u);
  Post(Opcode::kWrite, 1, Piece(0, 4 * kMtu));
  Run(base::Microseconds(40));
  EXPECT_THAT(Gaps(), ElementsAre(354 * 16000, 338 * 16000, 338 * 16000));
}

// The same with 4 bytes more in the first and last.
TEST_F(PacingTest, ReadDataLeavesAtTheRate) {
  Open();
  Arrive({FromPeer(Op::kCongestionNotification, 0)});
  Arrive({To(Request(Op::kReadRequest, 0), Remote(0), region_->rkey(), 4 * kMtu)});
  Run(base::Microseconds(40));
  EXPECT_THAT(Opcodes(fabric_.sent), ElementsAre(Op::kReadResponseFirst, Op::kReadResponseMiddle,
                                                 Op::kReadResponseMiddle, Op::kReadResponseLast));
  EXPECT_THAT(Gaps(), ElementsAre(342 * 16000, 338 * 16000, 338 * 16000));
}

TEST_F(PacingTest, AcknowledgementsDoNotWaitForTheRate) {
  Open();
  Arrive({FromPeer(Op::kCongestionNotification, 0)});
  Post(Opcode::kSend, 1, Piece(0, 4 * kMtu));
  Run();
  EXPECT_EQ(std::exchange(fabric_.sent, {}).size(), 1u);
  Arrive({To(Request(Op::kWriteOnly, 0, Bytes(5, 1)), Remote(0), region_->rkey(), 5)});
  EXPECT_THAT(Opcodes(TakeSent()), ElementsAre(Op::kAcknowledge));
}

// A turn is a batch of the port's; each packet has one.
TEST_F(PacingTest, APacketCostsOneTurn) {
  Open();
  Arrive({FromPeer(Op::kCongestionNotification, 0)});
  Run(base::Microseconds(1));
  const uint64_t before = scheduler_.tasks_run();
  Post(Opcode::kSend, 1, Piece(0, 8 * kMtu));
  Run(base::Microseconds(54));
  EXPECT_EQ(fabric_.sent.size(), 8u);
  EXPECT_LE(scheduler_.tasks_run() - before, 9u);
}

TEST_F(PacingTest, AQueuePairInErrorForgetsWhatItWaitsFor) {
  Open();
  Arrive({FromPeer(Op::kCongestionNotification, 0)});
  Post(Opcode::kSend, 1, Piece(0, 4 * kMtu));
  EXPECT_EQ(TakeSent().size(), 1u);
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kError).ok());
  Run(base::Milliseconds(1));
  EXPECT_EQ(TakeSent().size(), 0u);
}

// At the least rate a window's packets take longer than a time-out: acknowledgements are asked for
// in between.
TEST_F(PacingTest, ASlowRateCausesNoTimeOut) {
  device_options_.dcqcn.minimum_rate = 1'000'000;
  device_options_.dcqcn.rate_timer = base::Seconds(1000);
  Open();
  for (int i = 0; i < 20; ++i) Arrive({FromPeer(Op::kCongestionNotification, 0)});
  EXPECT_EQ(counters().rate, 1'000'000u);
  Post(Opcode::kSend, 1, Piece(0, 12 * kMtu));
  for (int i = 0; i < 400; ++i) {
    Run(base::Microseconds(100));
    for (const Sent& sent : std::exchange(fabric_.sent, {})) {
      Packet ack = FromPeer(Op::kAcknowledge, sent.packet.psn);
      ack.syndrome = kAck;
      if (sent.packet.ack_request) Arrive({ack});
    }
  }
  EXPECT_EQ(counters().packets_sent, 12u);
  EXPECT_EQ(Poll().size(), 1u);
  EXPECT_EQ(counters().packets_retransmitted, 0u);
}

TEST(CongestionControlTest, EachHasAName) {
  for (const CongestionControl control :
       {CongestionControl::kAdditive, CongestionControl::kFixed, CongestionControl::kNone, CongestionControl::kDcqcn}) {
    EXPECT_EQ(*ParseCongestionControl(ToString(control)), control);
    EXPECT_GE(MakeCongestion(control, {})->Window(), 1u);
  }
  EXPECT_EQ(CongestionChoice::Parse("fixed")->control, CongestionControl::kFixed);
  EXPECT_EQ(CongestionChoice::Parse("dcqcn:2.5Gb/s")->line_rate, 2'500'000'000u);
  for (const char* wrong : {"", "dcqcn", "dcqcn:", "dcqcn:10", "dcqcn:0.5Mb/s", "additive:10Gb/s"}) {
    EXPECT_FALSE(CongestionChoice::Parse(wrong).ok()) << wrong;
  }
  EXPECT_THAT(ParseCongestionControl("cubic").status().message(), testing::HasSubstr("additive, fixed, none, dcqcn"));
}

}  // namespace
}  // namespace tokamak::verbs::soft
