#include "lib/node/cluster_view.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/time/sim_loop.h"
#include "tests/node/trouble_directory.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;
using View = ClusterView::View;

// The nodes, as far as they answer: each 1 ms after it is asked.
class AnsweringNodes final : public transport::Caller {
 public:
  explicit AnsweringNodes(base::EventLoop& loop) : loop_(loop) {}

  base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                     CallCallback done) override {
    EXPECT_TRUE(request.empty());
    auto call = std::make_unique<OneCall>(*this);
    most = std::max(most, open);
    ++asked;
    const auto answer = answers.find(peer.ToString());
    if (answer == answers.end()) {
      call->timer = loop_.RunAfter(deadline, [done] { done(absl::DeadlineExceededError("no reply in time")); });
    } else {
      call->timer =
          loop_.RunAfter(Milliseconds(1), [done, bytes = answer->second] { done(absl::MakeConstSpan(bytes)); });
    }
    return call;
  }
  uint32_t max_call_size() const override { return 16 * 1024; }

  std::map<std::string, std::vector<uint8_t>> answers;  // by address; none: it does not answer
  size_t asked = 0;
  size_t open = 0;  // whose handles live
  size_t most = 0;

 private:
  struct OneCall final : base::Handle {
    explicit OneCall(AnsweringNodes& n) : nodes(n) { ++nodes.open; }
    ~OneCall() override { --nodes.open; }
    AnsweringNodes& nodes;
    base::Timer timer;
  };

  base::EventLoop& loop_;
};

class ClusterViewTest : public testing::Test {
 protected:
  static NodeNumbers Numbers(uint64_t value) {
    NodeNumbers numbers;
    numbers.page = "10.0.0.1:9464";
    numbers.numbers = {{"store_used_bytes", value}};
    return numbers;
  }
  void Join(const directory::NodeId& id, const std::string& address, base::Duration lease = Seconds(1000)) {
    directory::JoinRequest request;
    request.node = {id, 1, {address}, "soft", 4096};
    request.lease = lease;
    request.grace = Seconds(60);
    calls_.push_back(directory_.local().Join(request, Seconds(1),
                                             [](const auto& joined) { EXPECT_TRUE(joined.ok()) << joined.status(); }));
    scheduler_.RunFor(base::Nanoseconds(1));
  }
  // One that answers.
  void Add(const directory::NodeId& id, const std::string& address, uint64_t value) {
    Join(id, address);
    nodes_.answers[address] = NodeNumbers::Encode(Numbers(value));
  }
  base::Pending Begin(int* answers) {
    return view_->Look([this, answers](const View& view) {
      ++*answers;
      seen_ = view;
    });
  }
  View Look() {
    int answers = 0;
    const base::Pending look = Begin(&answers);
    EXPECT_EQ(answers, 0) << "the callback ran inside the call";
    scheduler_.RunFor(ClusterView::kDirectoryDeadline + ClusterView::kNodesDeadline);
    EXPECT_EQ(answers, 1);
    return seen_;
  }
  static std::string Describe(const View& view) {
    std::string all = view.located ? "" : "away: ";
    for (const ClusterView::Entry& entry : view.nodes) {
      static constexpr const char* kStates[] = {"alive", "suspected", "silent"};
      all += entry.node.id + " " + kStates[static_cast<size_t>(entry.state)];
      if (entry.numbers.has_value()) all += " " + std::to_string(entry.numbers->numbers.front().value);
      all += "; ";
    }
    return all;
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  TroubleDirectory directory_{loop_};
  AnsweringNodes nodes_{loop_};
  const directory::NodeInfo self_{"n1", 1, {"10.0.0.1:7000"}, "soft", 4096};
  std::vector<base::Pending> calls_;
  View seen_;
  std::unique_ptr<ClusterView> view_ =
      std::make_unique<ClusterView>(ClusterView::Needs{loop_, directory_, nodes_, self_, [] { return Numbers(1); }});
};

TEST_F(ClusterViewTest, EveryNodeIsShownWithItsReport) {
  Join("n1", "10.0.0.1:7000");
  Add("n3", "10.0.0.3:7000", 3);
  Add("n2", "10.0.0.2:7000", 2);
  const View view = Look();
  EXPECT_EQ(Describe(view), "n1 alive 1; n2 alive 2; n3 alive 3; ");
  EXPECT_EQ(view.nodes[1].numbers->page, "10.0.0.1:9464");
  EXPECT_EQ(view.nodes[1].node.capacity, 4096u);
  EXPECT_EQ(nodes_.asked, 2u) << "who looks asks itself without a call";
}

TEST_F(ClusterViewTest, ANodeThatDoesNotAnswerIsSuspectedBeforeItsLeaseEnds) {
  Join("n1", "10.0.0.1:7000");
  Join("n2", "10.0.0.2:7000");
  scheduler_.RunFor(Seconds(7));
  const View view = Look();
  EXPECT_EQ(Describe(view), "n1 alive 1; n2 suspected; ");
  EXPECT_GE(view.nodes[1].unheard_for, Seconds(7));
  EXPECT_EQ(view.nodes[0].unheard_for, base::Duration());
}

TEST_F(ClusterViewTest, ASilentNodeIsShownWhetherItAnswersOrNot) {
  Join("n1", "10.0.0.1:7000");
  Join("n2", "10.0.0.2:7000", Seconds(1));
  Join("n3", "10.0.0.3:7000", Seconds(1));
  nodes_.answers["10.0.0.3:7000"] = NodeNumbers::Encode(Numbers(3));
  scheduler_.RunFor(Seconds(2));
  EXPECT_EQ(Describe(Look()), "n1 alive 1; n2 silent; n3 silent 3; ");
}

TEST_F(ClusterViewTest, AMalformedReportIsNotShown) {
  Join("n1", "10.0.0.1:7000");
  const auto answers = [this](const std::string& bytes) {
    Join("n2", "10.0.0.2:7000");
    nodes_.answers["10.0.0.2:7000"] = std::vector<uint8_t>(bytes.begin(), bytes.end());
    scheduler_.RunFor(ClusterView::kGoodFor);
    return Describe(Look());
  };
  EXPECT_EQ(answers(""), "n1 alive 1; n2 alive; ") << "of another release";
  EXPECT_EQ(answers("rubbish"), "n1 alive 1; n2 alive; ");
}

TEST_F(ClusterViewTest, ManyViewersCostOneQuestion) {
  Join("n1", "10.0.0.1:7000");
  Add("n2", "10.0.0.2:7000", 2);
  int answers = 0;
  for (int i = 0; i < 10; ++i) calls_.push_back(Begin(&answers));
  scheduler_.RunFor(Milliseconds(2));
  calls_.push_back(Begin(&answers));  // what was found a moment ago
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_EQ(answers, 11);
  EXPECT_EQ(nodes_.asked, 1u);
  EXPECT_EQ(directory_.Count("roster"), 1u);
  scheduler_.RunFor(ClusterView::kGoodFor);
  Look();
  EXPECT_EQ(nodes_.asked, 2u);
}

TEST_F(ClusterViewTest, WithoutTheDirectoryTheNodesThatItNamedLastAreAsked) {
  directory_.out_of_reach = true;
  EXPECT_EQ(Describe(Look()), "away: n1 alive 1; ") << "it never answered";
  directory_.out_of_reach = false;
  Join("n1", "10.0.0.1:7000");
  Add("n2", "10.0.0.2:7000", 2);
  Join("n3", "10.0.0.3:7000");
  EXPECT_EQ(Describe(Look()), "n1 alive 1; n2 alive 2; n3 suspected; ");
  directory_.out_of_reach = true;
  scheduler_.RunFor(Seconds(5));
  const View view = Look();
  EXPECT_EQ(Describe(view), "away: n1 alive 1; n2 alive 2; n3 suspected; ");
  EXPECT_GE(view.nodes[2].unheard_for, Seconds(5));
}

TEST_F(ClusterViewTest, TheNodesAskedAtOnceAreBounded) {
  Join("n1", "10.0.0.1:7000");
  for (size_t i = 0; i < ClusterView::kAtOnce + 44; ++i) {
    Add("m" + std::to_string(i), "10.0.1." + std::to_string(i % 250) + ":" + std::to_string(7000 + i), i);
  }
  const View view = Look();
  EXPECT_EQ(nodes_.asked, ClusterView::kAtOnce + 44);
  EXPECT_LE(nodes_.most, ClusterView::kAtOnce);
  for (const ClusterView::Entry& entry : view.nodes) EXPECT_TRUE(entry.numbers.has_value()) << entry.node.id;
}

TEST_F(ClusterViewTest, ADroppedViewEndsTheQuestion) {
  Join("n1", "10.0.0.1:7000");
  Join("n2", "10.0.0.2:7000");
  int answers = 0;
  base::Pending first = Begin(&answers), second = Begin(&answers);
  scheduler_.RunFor(Milliseconds(10));
  first.reset();
  EXPECT_EQ(nodes_.open, 1u) << "another waits";
  second.reset();
  EXPECT_EQ(nodes_.open, 0u);
  scheduler_.RunFor(Seconds(2));
  EXPECT_EQ(answers, 0);
  EXPECT_EQ(Describe(Look()), "n1 alive 1; n2 suspected; ");
}

TEST_F(ClusterViewTest, TheViewMayBeDroppedInItsCallback) {
  Join("n1", "10.0.0.1:7000");
  int answers = 0;
  const base::Pending first = view_->Look([&](const View&) { view_.reset(); });
  const base::Pending second = Begin(&answers);
  scheduler_.RunFor(Seconds(2));
  EXPECT_EQ(view_, nullptr);
  EXPECT_EQ(answers, 0);
}

}  // namespace
}  // namespace tokamak::node
