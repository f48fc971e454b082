// The scripts in Redis and the state in LocalDirectory are two tellings of one contract: whatever
// nodes do, in whatever order, they answer alike.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/directory/local.h"
#include "lib/directory/redis/redis_directory.h"
#include "lib/os/epoll_loop.h"
#include "tests/directory/redis_line.h"
#include "tests/directory/redis_server.h"

namespace tokamak::directory::redis {
namespace {

constexpr base::Duration kModelPatience = base::Seconds(30);
constexpr base::Duration kLong = base::Seconds(3600);
constexpr int kSteps = 1500;
constexpr const char* kStandings[] = {" new", " established", " unanswered"};

std::string Sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, " ");
}

std::string Describe(const base::ObjectVersion& version) {
  return absl::StrCat(version.id.ToHex(), ":", static_cast<uint64_t>(version.generation));
}
std::string Describe(const JoinReply& reply) {
  std::vector<std::string> drops;
  for (const base::ObjectVersion& drop : reply.drops) drops.push_back(Describe(drop));
  return absl::StrCat(reply.entered ? "entered" : "renewed", reply.outdated ? " outdated" : "",
                      " drops: ", Sorted(drops));
}
std::string Describe(const UpdateStatuses& statuses) {
  std::string text;
  for (const absl::Status& status : statuses) absl::StrAppend(&text, absl::StatusCodeToString(status.code()), " ");
  return text;
}
std::string Describe(const LocatedObject& info) {
  return absl::StrCat(static_cast<uint64_t>(info.generation), " ", info.data_size, "+", info.metadata_size, " ",
                      Sorted(info.holders));
}
std::string Describe(const DeleteReply& reply) {
  return absl::StrCat(static_cast<uint64_t>(reply.generation), " told: ", absl::StrJoin(reply.holders, " "),
                      " silent: ", absl::StrJoin(reply.silent, " "));
}
std::string Describe(const std::vector<uint32_t>& places) { return absl::StrJoin(places, " "); }
std::string Describe(const std::vector<NodeInfo>& nodes) {
  return absl::StrJoin(nodes, " ", [](std::string* out, const NodeInfo& node) {
    absl::StrAppend(out, node.id, "/", node.incarnation, "@", node.engines.front());
  });
}
template <typename T>
std::string Describe(const absl::StatusOr<T>& result) {
  return result.ok() ? Describe(*result) : absl::StatusCodeToString(result.status().code());
}
std::string Describe(const absl::Status& status) { return absl::StatusCodeToString(status.code()); }

class RedisModelTest : public testing::TestWithParam<uint64_t> {
 protected:
  // Odd seeds: both have just begun for as long as the test lasts. Even ones: they have learnt all
  // at once.
  RedisModelTest() : recovery_(GetParam() % 2 == 1 ? kLong : base::Milliseconds(1)) {
    LocalOptions local;
    local.recovery = recovery_;
    model_ = std::make_unique<LocalDirectory>(loop_, local);
    Options options;
    options.target = server_.target();
    options.recovery = recovery_;
    redis_ = *RedisDirectory::Open(loop_, options);
    operator_ = std::make_unique<Line>(loop_, server_.target());
    bool answers = false;
    while (!answers) {
      answers = Run<absl::StatusOr<std::vector<NodeInfo>>>(*redis_, [](Directory& directory, auto done) {
                  return directory.Nodes(kModelPatience, done);
                }).ok();
      Pass(base::Milliseconds(1));
    }
  }

  // Everything due by then has run at the model, however busy the machine is.
  void Pass(base::Duration duration) {
    bool passed = false;
    const base::Timer timer = loop_.RunAfter(duration, [&] { passed = true; });
    loop_.RunUntil([&] { return passed; }, loop_.Now() + kModelPatience);
  }

  template <typename T>
  using Make = std::function<base::Pending(Directory&, std::function<void(T)>)>;
  template <typename T>
  T Run(Directory& directory, const Make<T>& make) {
    T result = absl::InternalError("no answer");
    bool answered = false;
    const base::Pending call = make(directory, [&](T value) {
      result = std::move(value);
      answered = true;
    });
    EXPECT_TRUE(loop_.RunUntil([&] { return answered; }, loop_.Now() + kModelPatience));
    return result;
  }
  // Makes a call at both; what one answers the other answers too.
  template <typename T>
  void Both(const std::string& call, const Make<T>& make) {
    history_.push_back(call);
    const T expected = Run<T>(*model_, make);
    const T result = Run<T>(*redis_, make);
    EXPECT_EQ(Describe(result), Describe(expected)) << absl::StrJoin(history_, "\n");
    absl::StrAppend(&history_.back(), " -> ", Describe(expected));
  }

  uint64_t Draw(uint64_t below) { return random_.Below(below); }
  NodeId DrawNode() { return std::string(1, static_cast<char>('a' + Draw(4))); }
  base::ObjectVersion DrawVersion() {
    return {base::ObjectId::FromName(absl::StrCat(Draw(5))), base::Generation{1 + Draw(3)}};
  }

  void Join(const NodeId& node, uint64_t incarnation, base::Duration lease, base::Duration grace) {
    Join(node, incarnation, lease, grace, Draw(4) == 0);
  }
  void Join(const NodeId& node, uint64_t incarnation, base::Duration lease, base::Duration grace, bool returning) {
    JoinRequest request;
    request.node = {node, incarnation, {Draw(8) == 0 ? "10.0.0.2:7000" : "10.0.0.1:7000"}, "soft", 1};
    request.lease = lease;
    request.grace = grace;
    request.returning = returning;
    request.complete = Draw(2) == 0;
    Both<absl::StatusOr<JoinReply>>(
        absl::StrCat("Join ", node, " ", incarnation, request.returning ? " returning" : "",
                     request.complete ? " complete" : "", lease == kLong ? "" : " shortly"),
        [&](Directory& directory, auto done) { return directory.Join(request, kModelPatience, done); });
    if (lease != kLong || request.returning) Pass(base::Milliseconds(10));  // what then ends has ended at both
  }

  // A directory that has lost its memory, and is joined by a node that had been in it.
  void Forget() {
    history_.push_back("Forget");
    LocalOptions local;
    local.recovery = recovery_;
    model_ = std::make_unique<LocalDirectory>(loop_, local);
    bool flushed = false;
    const base::Time limit = loop_.Now() + kModelPatience;
    while (!flushed && loop_.Now() < limit) {  // the operator's connection may not be up yet
      bool answered = false;
      const base::Pending flush =
          operator_->connection().Call({"FLUSHALL"}, kModelPatience, [&](const absl::StatusOr<Reply>& reply) {
            answered = true;
            flushed = reply.ok();
          });
      loop_.RunUntil([&] { return answered; }, limit);
      if (!flushed) Pass(base::Milliseconds(1));
    }
    EXPECT_TRUE(flushed);
    Join(DrawNode(), incarnation_, kLong, kLong, /*returning=*/true);
  }

  void DrawStep() {
    if (Draw(200) == 0) Forget();
    const NodeId node = DrawNode();
    switch (Draw(16)) {
      case 0:
      case 1:
      case 2:
        if (Draw(8) == 0) ++incarnation_;
        return Join(node, incarnation_ - Draw(2), kLong, kLong);
      case 3:
        if (Draw(4) == 0) Join(node, incarnation_, base::Milliseconds(1), Draw(2) == 0 ? base::Milliseconds(1) : kLong);
        return;
      case 4:
        if (Draw(4) == 0) {
          Both<absl::Status>(absl::StrCat("Leave ", node), [&](Directory& directory, auto done) {
            return directory.Leave(node, incarnation_, kModelPatience, done);
          });
        }
        return;
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
        return Update(node);
      case 10:
      case 11: {
        const NodeId puller = Draw(3) == 0 ? "" : node;
        const LocateRequest request{DrawVersion().id, {}, kModelPatience, puller};
        Both<absl::StatusOr<LocatedObject>>(
            absl::StrCat("Locate ", request.id.ToHex(), " by ", puller),
            [&](Directory& directory, auto done) { return directory.Locate(request, done); });
        return;
      }
      case 12:
        return Verify(node);
      case 13:
        Both<absl::StatusOr<std::vector<NodeInfo>>>(
            "Nodes", [](Directory& directory, auto done) { return directory.Nodes(kModelPatience, done); });
        return;
      default:
        return Delete();
    }
  }

  void Update(const NodeId& node) {
    std::vector<directory::Update> updates;
    std::string text = absl::StrCat("Update ", node);
    for (uint64_t i = 1 + Draw(3); i > 0; --i) {
      directory::Update update;
      update.kind = Draw(3) == 0 ? directory::Update::Kind::kWithdraw : directory::Update::Kind::kAnnounce;
      update.version = DrawVersion();
      if (Draw(12) == 0) update.version.generation = base::kNoGeneration;
      update.data_size = Draw(20) == 0 ? 11 : 10;
      update.metadata_size = 2;
      update.standing = static_cast<Standing>(Draw(3));
      absl::StrAppend(&text, update.kind == directory::Update::Kind::kWithdraw ? " -" : " +", Describe(update.version),
                      "/", update.data_size, kStandings[static_cast<size_t>(update.standing)]);
      updates.push_back(update);
    }
    Both<absl::StatusOr<UpdateStatuses>>(text, [&](Directory& directory, auto done) {
      return directory.Update(node, {}, updates, kModelPatience, done);
    });
  }
  void Verify(const NodeId& node) {
    std::vector<base::ObjectVersion> versions;
    for (size_t i = 0; i < 6; ++i) versions.push_back(DrawVersion());
    std::string text = absl::StrCat("Verify ", node);
    for (const base::ObjectVersion& version : versions) absl::StrAppend(&text, " ", Describe(version));
    Both<absl::StatusOr<std::vector<uint32_t>>>(
        text, [&](Directory& directory, auto done) { return directory.Verify(node, versions, kModelPatience, done); });
  }
  void Delete() {
    const base::ObjectVersion version = DrawVersion();
    DeleteRequest request;
    request.id = version.id;
    if (Draw(2) == 0) request.generation = version.generation;
    if (Draw(3) == 0) request.dropped = {DrawNode()};
    if (Draw(4) == 0) request.after = DrawNode();
    Both<absl::StatusOr<DeleteReply>>(
        absl::StrCat("Delete ", request.id.ToHex(), " ", static_cast<uint64_t>(request.generation), " dropped ",
                     absl::StrJoin(request.dropped, " "), " after ", request.after),
        [&](Directory& directory, auto done) { return directory.Delete(request, kModelPatience, done); });
  }

  const base::Duration recovery_;
  os::EpollLoop loop_;
  RedisServer server_;
  std::unique_ptr<LocalDirectory> model_;
  std::unique_ptr<RedisDirectory> redis_;
  std::unique_ptr<Line> operator_;
  base::Random random_{GetParam()};
  uint64_t incarnation_ = 1;
  std::vector<std::string> history_;
};

TEST_P(RedisModelTest, RedisAnswersAsTheLocalDirectoryDoes) {
  Join("a", 1, kLong, kLong);
  Pass(base::Milliseconds(10));  // what is over after a millisecond is over at both
  for (int step = 0; step < kSteps && !HasFailure(); ++step) DrawStep();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RedisModelTest, testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace tokamak::directory::redis
