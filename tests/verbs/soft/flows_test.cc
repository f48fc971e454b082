// Flows of bytes over paths that lose packets, by chance or for want of room, in virtual time: they
// end, with the right bytes, without flooding the path, and share it.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/verbs/soft/bottleneck_fabric.h"
#include "tests/verbs/soft/two_nics.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kRequest = 256 * 1024;
constexpr int64_t kGigabit = 8000;  // picoseconds per byte

// Keeps requests posted on one queue pair, and counts what was acknowledged.
class Flow final {
 public:
  Flow(Host& from, Host& to, Opcode opcode) : from_(from), to_(to), opcode_(opcode) {}

  void Go() {
    for (const Completion& completion : from_.Poll()) {
      ASSERT_EQ(completion.status, CompletionStatus::kSuccess);
      acknowledged += kRequest;
      --posted_;
    }
    while (posted_ < kOutstanding && started < most) {
      const size_t offset = started % from_.memory.size();
      SendRequest request;
      const Sge piece = from_.Piece(offset, kRequest);
      request.opcode = opcode_;
      request.flags = kSignaled;
      request.sges = absl::MakeConstSpan(&piece, 1);
      request.remote_address = to_.Remote(offset);
      request.rkey = to_.region->rkey();
      ASSERT_TRUE(from_.queue_pair->PostSend(absl::MakeConstSpan(&request, 1)).ok());
      ++posted_;
      started += kRequest;
    }
  }

  uint64_t most = UINT64_MAX;  // bytes
  uint64_t started = 0;
  uint64_t acknowledged = 0;

 private:
  static constexpr int kOutstanding = 8;

  Host& from_;
  Host& to_;
  const Opcode opcode_;
  int posted_ = 0;
};

class FlowsTest : public TwoNics {
 protected:
  FlowsTest() : wire_loop_(scheduler_) {}
  ~FlowsTest() override { hosts_.clear(); }

  void Build(const BottleneckOptions& there, const BottleneckOptions& back) {
    fabric_ = std::make_unique<BottleneckFabric>(wire_loop_, there, back);
  }

  // Two hosts, on either side, with a connected queue pair each.
  void AddPair(const DeviceOptions& options = {}) {
    const size_t index = hosts_.size() / 2 + 1;
    for (int side : {1, 2}) {
      hosts_.push_back(std::make_unique<Host>(scheduler_));
      OpenHost(*fabric_, options, Deep(), absl::StrCat("10.0.", side, ".", index).c_str(), index * 2 + side,
               hosts_.back().get());
    }
    Walk(left(index - 1), right(index - 1), 4096, {}, 1, 2);
    Walk(right(index - 1), left(index - 1), 4096, {}, 2, 1);
  }
  Host& left(size_t index) { return *hosts_[2 * index]; }
  Host& right(size_t index) { return *hosts_[2 * index + 1]; }

  // Runs until all flows have their bytes, at most for `limit`.
  base::Duration RunFlows(std::vector<Flow>& flows, base::Duration limit) {
    const base::Time start = scheduler_.Now();
    while (scheduler_.Now() - start < limit) {
      bool done = true;
      for (Flow& flow : flows) {
        flow.Go();
        done = done && flow.acknowledged >= flow.most;
      }
      if (done) break;
      Run(base::Microseconds(200));
    }
    return scheduler_.Now() - start;
  }

  std::string Report(const std::vector<Flow>& flows, base::Duration took) {
    std::string text;
    for (size_t i = 0; i < flows.size(); ++i) {
      const QueuePairCounters l = left(i).device->counters().queue_pairs;
      const QueuePairCounters r = right(i).device->counters().queue_pairs;
      absl::StrAppend(&text, "flow ", i, ": ", flows[i].acknowledged >> 20, " MiB in ", took.picoseconds() / 1000000000,
                      " ms; sent ", l.packets_sent, "+", r.packets_sent, ", again ", l.packets_retransmitted,
                      ", overdue ", l.answers_overdue, ", time-outs ", l.timeouts, ", out of order ",
                      r.requests_out_of_order, ", lost responses ", l.responses_lost, "\n");
    }
    const BottleneckCounters& c = fabric_->there();
    const BottleneckCounters& d = fabric_->back();
    absl::StrAppend(&text, "there: offered ", c.offered, " lost ", c.lost, " dropped ", c.dropped, " passed ", c.passed,
                    "; back: offered ", d.offered, " lost ", d.lost, " dropped ", d.dropped, "\n");
    return text;
  }

  sim::SimLoop wire_loop_;
  std::unique_ptr<BottleneckFabric> fabric_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

double Share(uint64_t part, uint64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

struct LossCase {
  std::string name;
  Opcode opcode;
  double loss;
  uint64_t mebibytes;
  double most_sent;         // data packets on the wire, of those needed
  double least_throughput;  // MiB/s
};

class LossTest : public FlowsTest, public testing::WithParamInterface<LossCase> {};

TEST_P(LossTest, BytesArriveWithoutATimeOutAndWithoutFlooding) {
  const LossCase& test = GetParam();
  BottleneckOptions path;
  path.picoseconds_per_byte = kGigabit / 10;
  path.loss = test.loss;
  BottleneckOptions back = path;
  back.seed = 2;
  Build(path, back);
  AddPair();
  std::vector<Flow> flows = {{left(0), right(0), test.opcode}};
  flows[0].most = test.mebibytes << 20;
  const base::Duration took = RunFlows(flows, base::Seconds(10));
  SCOPED_TRACE(Report(flows, took));
  EXPECT_EQ(flows[0].acknowledged, flows[0].most);
  EXPECT_EQ(left(0).memory, right(0).memory);
  const BottleneckCounters& data = test.opcode == Opcode::kRead ? fabric_->back() : fabric_->there();
  EXPECT_GT(data.lost, 0u);
  EXPECT_LE(Share(data.offered, flows[0].most / 4096), test.most_sent);
  EXPECT_GE(static_cast<double>(flows[0].most >> 20) / took.seconds(), test.least_throughput);
  EXPECT_EQ(left(0).device->counters().queue_pairs.timeouts, 0u);
}

INSTANTIATE_TEST_SUITE_P(Loss, LossTest,
                         testing::Values(LossCase{"Write01", Opcode::kWrite, 0.001, 64, 1.3, 500},
                                         LossCase{"Write1", Opcode::kWrite, 0.01, 32, 1.4, 300},
                                         LossCase{"Write5", Opcode::kWrite, 0.05, 16, 1.6, 100},
                                         LossCase{"Read01", Opcode::kRead, 0.001, 64, 1.3, 500},
                                         LossCase{"Read1", Opcode::kRead, 0.01, 32, 1.4, 150},
                                         LossCase{"Read5", Opcode::kRead, 0.05, 16, 1.6, 50}),
                         [](const auto& tested) { return tested.param.name; });

struct BottleneckCase {
  std::string name;
  Opcode opcode;
  uint64_t queue;  // packets
};

class BottleneckTest : public FlowsTest, public testing::WithParamInterface<BottleneckCase> {
 protected:
  static constexpr int64_t kRate = 5 * kGigabit;  // 200 Mb/s

  void SetUp() override {
    BottleneckOptions path;
    path.picoseconds_per_byte = kRate;
    path.queue_bytes = GetParam().queue * 4200;
    path.delay = base::Microseconds(100);
    Build(path, path);
  }
  const BottleneckCounters& data() const {
    return GetParam().opcode == Opcode::kRead ? fabric_->back() : fabric_->there();
  }
  static uint64_t Fits(base::Duration time) { return static_cast<uint64_t>(time.picoseconds() / kRate); }
};

TEST_P(BottleneckTest, OneFlowFillsItWithoutDropStorms) {
  AddPair();
  std::vector<Flow> flows = {{left(0), right(0), GetParam().opcode}};
  const base::Duration time = base::Seconds(2);
  RunFlows(flows, time);
  SCOPED_TRACE(Report(flows, time));
  EXPECT_GT(data().dropped, 0u) << "it never filled the queue";
  EXPECT_GE(Share(flows[0].acknowledged, Fits(time)), 0.75);
  EXPECT_LE(Share(data().dropped, data().offered), 0.05);
  EXPECT_LE(Share(data().offered, flows[0].acknowledged / 4096), 1.3);
}

TEST_P(BottleneckTest, TwoFlowsShareItFairlyThoughOneCameFirst) {
  AddPair();
  AddPair();
  std::vector<Flow> flows = {{left(0), right(0), GetParam().opcode}, {left(1), right(1), GetParam().opcode}};
  flows[1].most = 0;
  RunFlows(flows, base::Milliseconds(500));
  flows[1].most = UINT64_MAX;
  RunFlows(flows, base::Milliseconds(500));
  const std::vector<uint64_t> before = {flows[0].acknowledged, flows[1].acknowledged};
  const base::Duration time = base::Seconds(2);
  RunFlows(flows, time);
  SCOPED_TRACE(Report(flows, time));
  const auto first = static_cast<double>(flows[0].acknowledged - before[0]);
  const auto second = static_cast<double>(flows[1].acknowledged - before[1]);
  const double jain = (first + second) * (first + second) / (2 * (first * first + second * second));
  EXPECT_GE(jain, 0.9);
  EXPECT_GE((first + second) / static_cast<double>(Fits(time)), 0.75);
}

INSTANTIATE_TEST_SUITE_P(Bottleneck, BottleneckTest,
                         testing::Values(BottleneckCase{"Write16", Opcode::kWrite, 16},
                                         BottleneckCase{"Write64", Opcode::kWrite, 64},
                                         BottleneckCase{"Read16", Opcode::kRead, 16},
                                         BottleneckCase{"Read64", Opcode::kRead, 64}),
                         [](const auto& tested) { return tested.param.name; });

// Go-back-N throws away a window for each loss; selective repeat sends again what was lost.
TEST_F(FlowsTest, SelectiveRepeatSendsLittleMoreThanWasLost) {
  BottleneckOptions path;
  path.picoseconds_per_byte = kGigabit / 10;
  path.loss = 0.01;
  BottleneckOptions back = path;
  back.seed = 2;
  Build(path, back);
  DeviceOptions options;
  options.congestion = CongestionControl::kFixed;
  options.window_packets = 100;
  for (const bool selective : {false, true}) {
    options.selective_repeat = selective;
    AddPair(options);
  }
  double again[2];
  for (size_t i = 0; i < 2; ++i) {
    std::vector<Flow> flows = {{left(i), right(i), Opcode::kWrite}};
    flows[0].most = uint64_t{32} << 20;
    RunFlows(flows, base::Seconds(20));
    EXPECT_EQ(flows[0].acknowledged, flows[0].most);
    EXPECT_EQ(left(i).memory, right(i).memory);
    const QueuePairCounters sent = left(i).device->counters().queue_pairs;
    again[i] = Share(sent.packets_retransmitted, flows[0].most / 4096);
  }
  EXPECT_GT(again[0], 0.2);
  EXPECT_LT(again[1], 0.05);
}

// Two senders of 10 Gb/s meet before 5 Gb/s, with room for 1 MB: without marks that is lost, with
// them the queue stays short and the link busy.
class MarkingTest : public FlowsTest, public testing::WithParamInterface<Opcode> {
 protected:
  std::vector<Flow> Meet(CongestionControl congestion) {
    BottleneckOptions path;
    path.picoseconds_per_byte = kGigabit / 5;
    path.queue_bytes = 1 << 20;
    path.mark_bytes = 100 << 10;
    Build(path, path);
    DeviceOptions options;
    options.congestion = congestion;
    options.window_packets = 1024;
    options.dcqcn.line_rate = 10'000'000'000;
    AddPair(options);
    AddPair(options);
    std::vector<Flow> flows = {{left(0), right(0), GetParam()}, {left(1), right(1), GetParam()}};
    RunFlows(flows, kLong);
    return flows;
  }
  const BottleneckCounters& data() const { return GetParam() == Opcode::kRead ? fabric_->back() : fabric_->there(); }
  Host& sender(size_t index) { return GetParam() == Opcode::kRead ? right(index) : left(index); }
  Host& receiver(size_t index) { return GetParam() == Opcode::kRead ? left(index) : right(index); }

  static constexpr base::Duration kLong = base::Milliseconds(100);
};

TEST_P(MarkingTest, DcqcnKeepsTheQueueShortAndTheLinkBusy) {
  const std::vector<Flow> flows = Meet(CongestionControl::kDcqcn);
  SCOPED_TRACE(Report(flows, kLong));
  EXPECT_GT(data().marked, 0u);
  EXPECT_EQ(data().dropped, 0u);
  const double bytes = static_cast<double>(flows[0].acknowledged + flows[1].acknowledged);
  EXPECT_GE(bytes * 8 / kLong.seconds(), 0.7 * 5e9) << "alpha begins at 1, so the first cuts are deep";
  for (size_t i = 0; i < 2; ++i) {
    const QueuePairCounters told = *sender(i).device->queue_pair_counters(sender(i).queue_pair->number());
    const QueuePairCounters tells = receiver(i).device->counters().queue_pairs;
    EXPECT_GT(tells.marks_received, 0u);
    EXPECT_GT(tells.notifications_sent, 0u);
    EXPECT_LE(tells.notifications_sent, static_cast<uint64_t>(kLong.microseconds() / 50 + 1));
    EXPECT_GT(told.notifications_received, 0u);
    EXPECT_GT(told.rate, 0u) << "the rate fell";
    EXPECT_LT(told.rate, 6'000'000'000u);
    EXPECT_EQ(told.packets_retransmitted, 0u);
  }
  EXPECT_GE(Share(std::min(flows[0].acknowledged, flows[1].acknowledged), bytes), 0.3);
}

TEST_P(MarkingTest, WithoutCongestionControlTheQueueOverflows) {
  Meet(CongestionControl::kNone);
  EXPECT_EQ(data().marked, 0u) << "nobody said that it reacts to marks";
  EXPECT_GT(data().dropped, 0u);
}

INSTANTIATE_TEST_SUITE_P(Marking, MarkingTest, testing::Values(Opcode::kWrite, Opcode::kRead),
                         [](const auto& tested) { return tested.param == Opcode::kRead ? "Read" : "Write"; });

}  // namespace
}  // namespace tokamak::verbs::soft
