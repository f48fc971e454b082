// A node that has another one bring objects to itself.
#include "lib/node/pulls/object_push.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;

class ObjectPushTest : public NodeTest {
 protected:
  struct Pushed {
    bool answered = false;
    std::vector<absl::Status> statuses;
    base::Pending call;
  };

  std::unique_ptr<Pushed> Begin(size_t from, const directory::NodeId& to, const std::vector<std::string>& names,
                                base::Duration timeout = Seconds(5)) {
    auto pushed = std::make_unique<Pushed>();
    PushRequest request;
    request.timeout = timeout;
    for (const std::string& name : names) request.ids.push_back(Id(name));
    pushed->call = at(from).node().Push(to, request, [pushed = pushed.get()](absl::Span<const absl::Status> statuses) {
      pushed->answered = true;
      pushed->statuses.assign(statuses.begin(), statuses.end());
    });
    EXPECT_FALSE(pushed->answered) << "answered inside the call";
    return pushed;
  }
  std::vector<absl::Status> Push(size_t from, const directory::NodeId& to, const std::vector<std::string>& names,
                                 base::Duration timeout = Seconds(5)) {
    const auto pushed = Begin(from, to, names, timeout);
    EXPECT_TRUE(cluster_->RunUntil([&] { return pushed->answered; }, timeout + Seconds(10)));
    return pushed->statuses;
  }
  const directory::NodeId& NameOf(size_t i) { return at(i).node().options().id; }
};

TEST_F(ObjectPushTest, APushedObjectIsBroughtToAnotherNodeAndPinnedForNobody) {
  Build(3);
  Put(1, "small", 1000);
  Put(1, "large", 3 << 20, 17);
  for (const absl::Status& status : Push(1, NameOf(2), {"small", "large"})) EXPECT_EQ(status, absl::OkStatus());
  EXPECT_TRUE(at(2).Has("small") && at(2).Has("large"));
  EXPECT_EQ(at(2).store().statistics().pins, 0u);
  EXPECT_GT(at(2).store().Evict(1 << 30).objects, 0u) << "copies like others";
  // A node that pushes need not hold the object.
  EXPECT_EQ(Push(0, NameOf(2), {"large"}).front(), absl::OkStatus());
  EXPECT_TRUE(at(2).Has("large"));
  EXPECT_FALSE(at(0).Has("large"));
}

TEST_F(ObjectPushTest, EachObjectHasItsResult) {
  Build(2);
  Put(0, "there", 1000);
  const auto statuses = Push(0, NameOf(1), {"nowhere", "there"}, Milliseconds(50));
  ASSERT_EQ(statuses.size(), 2u);
  EXPECT_FALSE(statuses[0].ok());
  EXPECT_TRUE(absl::StrContains(statuses[0].message(), NameOf(1))) << statuses[0];
  EXPECT_EQ(statuses[1], absl::OkStatus());
}

TEST_F(ObjectPushTest, APushWaitsForAnObjectThatDoesNotExistYet) {
  Build(2);
  const auto pushed = Begin(0, NameOf(1), {"later"});
  cluster_->RunFor(Milliseconds(100));
  EXPECT_FALSE(pushed->answered);
  Put(0, "later", 1000);
  EXPECT_TRUE(cluster_->RunUntil([&] { return pushed->answered; }, Seconds(5)));
  EXPECT_EQ(pushed->statuses.front(), absl::OkStatus());
}

TEST_F(ObjectPushTest, DroppingAPushCancelsAtTheOtherNode) {
  Build(2);
  auto pushed = Begin(0, NameOf(1), {"later"});
  EXPECT_TRUE(cluster_->RunUntil([&] { return at(1).node().pulls().running() == 1; }, Seconds(1)));
  pushed->call.reset();
  EXPECT_TRUE(cluster_->RunUntil([&] { return at(1).node().pulls().running() == 0; }, Seconds(1)));
  EXPECT_FALSE(pushed->answered);
}

TEST_F(ObjectPushTest, AMissingNodeAndThisNodeAreRefused) {
  Build(2);
  EXPECT_TRUE(absl::IsNotFound(Push(0, "nobody", {"a"}).front()));
  EXPECT_TRUE(absl::IsInvalidArgument(Push(0, NameOf(0), {"a"}).front()));
}

TEST_F(ObjectPushTest, PushesUnderWayAreBounded) {
  Build(2);
  std::vector<std::unique_ptr<Pushed>> pushed;
  for (int i = 0; i < 33; ++i) pushed.push_back(Begin(0, NameOf(1), {absl::StrCat("later", i)}));
  EXPECT_TRUE(cluster_->RunUntil([&] { return pushed.back()->answered; }, Seconds(1)));
  EXPECT_TRUE(absl::IsResourceExhausted(pushed.back()->statuses.front()));
  EXPECT_FALSE(pushed.front()->answered);
  pushed.clear();
  Put(0, "there", 1000);
  EXPECT_EQ(Push(0, NameOf(1), {"there"}).front(), absl::OkStatus());
}

TEST_F(ObjectPushTest, AGreedyPeerLeavesPushesToOthers) {
  Build(3);
  const auto begin = [&](size_t from, int number) {
    std::vector<std::string> names;
    for (size_t i = 0; i < PushRequest::kMaxPushed; ++i) names.push_back(absl::StrCat(from, "/", number, "/", i));
    return Begin(from, NameOf(2), names, Seconds(60));
  };
  std::vector<std::unique_ptr<Pushed>> first, second;
  for (int i = 0; i < 32; ++i) first.push_back(begin(0, i));  // as many as a node may
  cluster_->RunFor(Seconds(5));
  for (int i = 0; i < 32; ++i) second.push_back(begin(1, i));
  cluster_->RunFor(Seconds(5));
  const auto refused = [](const std::vector<std::unique_ptr<Pushed>>& pushes) {
    return std::count_if(pushes.begin(), pushes.end(), [](const auto& one) {
      return one->answered && absl::IsResourceExhausted(one->statuses.front());
    });
  };
  EXPECT_EQ(refused(first), 0);
  EXPECT_EQ(refused(second), 16) << "half of what the first has";
  EXPECT_LE(at(2).node().pulls().looked_for(), ObjectPush::kMaxBrought);
  first.clear();
  second.resize(1);
  cluster_->RunFor(Seconds(1));
  const auto again = begin(1, 99);
  cluster_->RunFor(Seconds(1));
  EXPECT_FALSE(again->answered) << "what the first gave back is there for others";
}

}  // namespace
}  // namespace tokamak::node
