// The requests of a leaving node to another, and the answers.
#include "lib/node/pulls/object_keep.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;
using Answer = KeepAnswer;

// Node 0 is asked by node 1.
class ObjectKeepTest : public NodeTest {
 protected:
  KeepRequest RequestFor(const std::string& name) {
    const auto place = at(1).store().Find(Id(name));
    return {{Id(name), place->generation}, place->data_size, place->metadata_size};
  }
  struct Asked {
    std::optional<Answer> answer;
    base::Duration took;
    base::Pending call;
  };
  std::unique_ptr<Asked> Ask(const KeepRequest& request) {
    auto asked = std::make_unique<Asked>();
    std::vector<uint8_t> bytes = EncodeRequest(request);
    bytes.insert(bytes.begin(), static_cast<uint8_t>(Service::kObjects));
    asked->call = at(1).engine().Call(at(0).engine().address(), bytes, Seconds(100),
                                      [asked = asked.get(), began = cluster_->time.Now(),
                                       this](const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
                                        ASSERT_TRUE(reply.ok()) << reply.status();
                                        asked->answer = DecodeKeepAnswer(*reply);
                                        asked->took = cluster_->time.Now() - began;
                                      });
    return asked;
  }
  Answer AnswerTo(const KeepRequest& request) {
    const auto asked = Ask(request);
    EXPECT_TRUE(cluster_->RunUntil([&] { return asked->answer.has_value(); }, Seconds(100)));
    took_ = asked->took;
    return asked->answer.value_or(Answer{});
  }

  base::Duration took_;
};

TEST_F(ObjectKeepTest, ANodeKeepsTheObjectsThatItCanGet) {
  Build(2);
  Put(1, "x", 100'000);
  EXPECT_EQ(AnswerTo(RequestFor("x")), Answer::kKept);
  EXPECT_EQ(at(0).store().statistics().kept_bytes, 100'000u);
}

TEST_F(ObjectKeepTest, OnlyTheRequestedContentIsKept) {
  Build(2);
  Put(1, "x", 100);
  KeepRequest other = RequestFor("x");
  other.version.generation = base::Generation{7};
  EXPECT_EQ(AnswerTo(other), Answer::kInUse);
  EXPECT_EQ(at(0).store().statistics().kept_bytes, 0u);
}

TEST_F(ObjectKeepTest, AGoneObjectIsNotAwaited) {
  Build(2);
  Put(1, "x", 100);
  const KeepRequest request = RequestFor("x");
  ASSERT_TRUE(cluster_->Delete(at(1), "x").ok());
  EXPECT_EQ(AnswerTo(request), Answer::kGone);
  EXPECT_LT(took_, Milliseconds(100));
}

TEST_F(ObjectKeepTest, AnObjectDeletedOnItsWayIsNotAwaited) {
  sim::ClusterOptions options;
  options.link.picoseconds_per_byte = 100'000;  // 80 Mb/s
  Build(2, {}, options);
  Put(1, "x", 7'000'000);
  KeepRequest request = RequestFor("x");
  const auto asked = Ask(request);
  ASSERT_TRUE(Serves(1));
  ASSERT_TRUE(cluster_->Delete(at(1), "x").ok());
  ASSERT_TRUE(cluster_->RunUntil([&] { return asked->answer.has_value(); }, Seconds(3)));
  EXPECT_EQ(asked->answer, Answer::kGone);
}

TEST_F(ObjectKeepTest, RoomIsNotAwaited) {
  Build(2);
  ASSERT_EQ(at(0).Put("there", 8'000'000), absl::OkStatus());
  Put(1, "x", 1'000'000);
  EXPECT_EQ(AnswerTo(RequestFor("x")), Answer::kNoRoom);
  EXPECT_LT(took_, Milliseconds(100));
  ASSERT_EQ(at(0).store().Delete(Id("there")), absl::OkStatus());
  EXPECT_EQ(AnswerTo(RequestFor("x")), Answer::kKept);
}

// As a stranger does that fills a store with what is never evicted, and says that it is small.
TEST_F(ObjectKeepTest, AGreedyPeerLeavesTheProgramsTheirPart) {
  Build(2);
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 14; ++i) {
    const std::string name = absl::StrCat("x", i);
    Put(1, name, 580'000);
    KeepRequest request = RequestFor(name);
    request.data_size = 1;
    asked.push_back(Ask(request));
  }
  const auto all_answered = [&] {
    return std::all_of(asked.begin(), asked.end(), [](const auto& one) { return one->answer.has_value(); });
  };
  ASSERT_TRUE(cluster_->RunUntil(all_answered, Seconds(100)));
  const auto kept =
      std::count_if(asked.begin(), asked.end(), [](const auto& one) { return one->answer == Answer::kKept; });
  EXPECT_EQ(kept, 13);
  EXPECT_EQ(asked.back()->answer, Answer::kNoRoom);
  EXPECT_EQ(at(0).store().statistics().kept_bytes, 13u * 580'000);
  EXPECT_EQ(AnswerTo(RequestFor("x0")), Answer::kKept) << "it is, already";
  EXPECT_EQ(at(0).Put("of a program", (8 << 20) / ObjectKeep::kPartOfPrograms), absl::OkStatus());
}

TEST_F(ObjectKeepTest, AnIdThatIsInUseHereIsRefused) {
  Build(2);
  Put(1, "x", 100'000);
  ASSERT_EQ(at(0).Create("x", 10), absl::OkStatus());
  EXPECT_EQ(AnswerTo(RequestFor("x")), Answer::kInUse);
  ASSERT_EQ(at(0).store().Abort(Id("x"), at(0).me), absl::OkStatus());
  EXPECT_EQ(AnswerTo(RequestFor("x")), Answer::kKept);
}

// A program of node 0 waits for the object on and on; who asks it to keep that does not.
TEST_F(ObjectKeepTest, AKeepIsAnsweredWhileAProgramHereGoesOnWaiting) {
  Build(2);
  ASSERT_EQ(at(0).Put("there", 8'000'000), absl::OkStatus());
  Put(1, "x", 1'000'000);
  const auto got = at(0).StartGet({"x"}, Within(Seconds(20)));
  cluster_->RunFor(Seconds(2));
  EXPECT_EQ(AnswerTo(RequestFor("x")), Answer::kNoRoom);
  EXPECT_LT(took_, Seconds(1));
  ASSERT_FALSE(got->done);
  ASSERT_EQ(at(0).store().Delete(Id("there")), absl::OkStatus());
  cluster_->Await(got);
  EXPECT_TRUE(got->results.front().location.has_value());
  at(0).Release(*got);
}

TEST_F(ObjectKeepTest, ANodeThatHasLeftKeepsNothing) {
  Build(2);
  Put(1, "x", 100);
  const KeepRequest request = RequestFor("x");
  at(0).node().Leave([](const absl::Status&) {});
  EXPECT_EQ(AnswerTo(request), Answer::kLeaving);
  EXPECT_LT(took_, Seconds(1));
}

}  // namespace
}  // namespace tokamak::node
