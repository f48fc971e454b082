#include "lib/node/copies/vouched_copies.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/node/calls/object_messages.h"
#include "sim/time/sim_loop.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;

verbs::Address Node(int number) { return *verbs::Address::Parse(absl::StrCat("10.0.0.", number, ":7000")); }
base::ObjectVersion VouchedVersion(uint64_t generation) {
  return {base::ObjectId::FromName("x"), base::Generation{generation}};
}

// Answers a millisecond later, as the test says.
class FakeNodes final : public transport::Caller {
 public:
  explicit FakeNodes(base::EventLoop& loop) : loop_(loop) {}

  base::Pending Call(const verbs::Address& node, absl::Span<const uint8_t> request, base::Duration deadline,
                     CallCallback done) override {
    const auto decoded = DecodeRequest(request);
    EXPECT_TRUE(decoded.has_value() && std::holds_alternative<DropCopyRequest>(*decoded));
    told.push_back(node);
    auto call = std::make_unique<OneCall>();
    const auto answer = answers.find(node);
    const bool answers_it = answer != answers.end();
    call->timer = loop_.RunAfter(answers_it ? Milliseconds(1) : deadline,
                                 [done = std::move(done), bytes = answers_it ? answer->second : Bytes(), answers_it] {
                                   if (!answers_it) return done(absl::DeadlineExceededError("no reply in time"));
                                   done(absl::Span<const uint8_t>(bytes));
                                 });
    return call;
  }
  uint32_t max_call_size() const override { return 16 * 1024; }

  using Bytes = std::vector<uint8_t>;
  std::map<verbs::Address, Bytes> answers;  // none: it does not answer
  std::vector<verbs::Address> told;

 private:
  struct OneCall final : base::Handle {
    base::Timer timer;
  };
  base::EventLoop& loop_;
};

class VouchedCopiesTest : public testing::Test {
 protected:
  // Answer of a node that has given copies to `nodes`.
  static FakeNodes::Bytes Names(const std::vector<verbs::Address>& nodes) { return EncodeDropCopyAnswer(nodes); }

  bool Vouch(const base::ObjectVersion& version, const verbs::Address& node) {
    return vouched_.Vouch(version, node, Seconds(70));
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  FakeNodes nodes_{loop_};
  std::vector<base::ObjectVersion> gone_;
  VouchedCopies vouched_{{loop_, nodes_, Node(1)},
                         {Seconds(70), Seconds(2), Seconds(1)},
                         [this](const base::ObjectVersion& version) { gone_.push_back(version); }};
};

TEST_F(VouchedCopiesTest, ADropIsSentToEachNodeAndEndsWhenAllHaveAnswered) {
  nodes_.answers[Node(2)] = Names({});
  nodes_.answers[Node(3)] = Names({});
  ASSERT_TRUE(Vouch(VouchedVersion(1), Node(2)));
  ASSERT_TRUE(Vouch(VouchedVersion(1), Node(3)));
  vouched_.Drop(VouchedVersion(1));
  vouched_.Drop(VouchedVersion(1));
  int told = 0;
  const base::Pending waits = vouched_.Await(VouchedVersion(1), [&] { ++told; });
  ASSERT_NE(waits, nullptr);
  scheduler_.RunFor(Milliseconds(2));
  EXPECT_EQ(nodes_.told.size(), 2u);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(gone_, std::vector<base::ObjectVersion>{VouchedVersion(1)});
  EXPECT_FALSE(vouched_.Contains(VouchedVersion(1)));
}

TEST_F(VouchedCopiesTest, AnotherGenerationIsNotAffected) {
  ASSERT_TRUE(Vouch(VouchedVersion(1), Node(2)));
  vouched_.Drop(VouchedVersion(2));
  EXPECT_EQ(vouched_.Await(VouchedVersion(2), [] { FAIL(); }), nullptr);
  scheduler_.RunFor(Seconds(5));
  EXPECT_TRUE(nodes_.told.empty());
  EXPECT_TRUE(vouched_.Contains(VouchedVersion(1)));
}

TEST_F(VouchedCopiesTest, ANodeThatDoesNotAnswerIsAskedAgain) {
  ASSERT_TRUE(Vouch(VouchedVersion(1), Node(2)));
  vouched_.Drop(VouchedVersion(1));
  scheduler_.RunFor(Seconds(10));
  EXPECT_GE(nodes_.told.size(), 3u);
  EXPECT_LE(nodes_.told.size(), 5u);
  EXPECT_TRUE(vouched_.Contains(VouchedVersion(1)));
  nodes_.answers[Node(2)] = Names({});
  scheduler_.RunFor(Seconds(4));
  EXPECT_FALSE(vouched_.Contains(VouchedVersion(1)));
}

TEST_F(VouchedCopiesTest, NodesNamedInAnswersAreAskedToo) {
  nodes_.answers[Node(2)] = Names({Node(3), Node(1)});  // this node needs no message
  nodes_.answers[Node(3)] = Names({Node(2)});           // in a circle
  ASSERT_TRUE(Vouch(VouchedVersion(1), Node(2)));
  vouched_.Drop(VouchedVersion(1));
  EXPECT_EQ(vouched_.NodesOf(VouchedVersion(1)), std::vector<verbs::Address>{Node(2)});
  scheduler_.RunFor(Milliseconds(5));
  EXPECT_EQ(nodes_.told, (std::vector<verbs::Address>{Node(2), Node(3)}));
  EXPECT_FALSE(vouched_.Contains(VouchedVersion(1)));
}

TEST_F(VouchedCopiesTest, MalformedAnswersDoNotCount) {
  const std::vector<FakeNodes::Bytes> malformed = {
      {}, {1}, {1, 0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 'x'}, {255, 255, 255, 255}};
  ASSERT_TRUE(Vouch(VouchedVersion(1), Node(2)));
  vouched_.Drop(VouchedVersion(1));
  for (const FakeNodes::Bytes& answer : malformed) {
    nodes_.answers[Node(2)] = answer;
    scheduler_.RunFor(Seconds(4));
    EXPECT_TRUE(vouched_.Contains(VouchedVersion(1)));
  }
}

TEST_F(VouchedCopiesTest, AnExpiredVouchIsGoneUnlessRenewed) {
  ASSERT_TRUE(Vouch(VouchedVersion(1), Node(2)));
  ASSERT_TRUE(Vouch(VouchedVersion(2), Node(2)));
  scheduler_.RunFor(Seconds(40));
  ASSERT_TRUE(Vouch(VouchedVersion(2), Node(2)));
  scheduler_.RunFor(Seconds(31));
  EXPECT_EQ(gone_, std::vector<base::ObjectVersion>{VouchedVersion(1)});
  EXPECT_TRUE(vouched_.Contains(VouchedVersion(2)));
  scheduler_.RunFor(Seconds(40));
  EXPECT_FALSE(vouched_.Contains(VouchedVersion(2)));
  EXPECT_TRUE(nodes_.told.empty());
}

TEST_F(VouchedCopiesTest, EachVouchLastsForItsOwnTime) {
  ASSERT_TRUE(Vouch(VouchedVersion(1), Node(2)));
  ASSERT_TRUE(vouched_.Vouch(VouchedVersion(1), Node(2), Seconds(4)));
  ASSERT_TRUE(vouched_.Vouch(VouchedVersion(2), Node(2), Seconds(4)));
  scheduler_.RunFor(Seconds(5));
  EXPECT_EQ(gone_, std::vector<base::ObjectVersion>{VouchedVersion(2)});
  scheduler_.RunFor(Seconds(66));
  EXPECT_EQ(gone_, (std::vector<base::ObjectVersion>{VouchedVersion(2), VouchedVersion(1)}));
}

TEST_F(VouchedCopiesTest, TooManyNodesOfOneObjectAreRefused) {
  for (size_t i = 0; i < VouchedCopies::kMaxNodes; ++i) {
    ASSERT_TRUE(Vouch(VouchedVersion(1), Node(static_cast<int>(i) + 2)));
  }
  EXPECT_FALSE(Vouch(VouchedVersion(1), Node(100)));
  EXPECT_TRUE(Vouch(VouchedVersion(1), Node(2)));
  EXPECT_TRUE(Vouch(VouchedVersion(2), Node(100)));
}

TEST_F(VouchedCopiesTest, ADroppedWaiterGetsNoAnswer) {
  nodes_.answers[Node(2)] = Names({});
  ASSERT_TRUE(Vouch(VouchedVersion(1), Node(2)));
  vouched_.Drop(VouchedVersion(1));
  base::Pending dropped = vouched_.Await(VouchedVersion(1), [] { FAIL(); });
  base::Pending second;
  const base::Pending first = vouched_.Await(VouchedVersion(1), [&] { second.reset(); });
  second = vouched_.Await(VouchedVersion(1), [] { FAIL() << "the first dropped it"; });
  dropped.reset();
  scheduler_.RunFor(Milliseconds(2));
  EXPECT_FALSE(vouched_.Contains(VouchedVersion(1)));
}

}  // namespace
}  // namespace tokamak::node
