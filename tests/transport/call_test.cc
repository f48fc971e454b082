// Calls: short requests and their replies.
#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/transport/outgoing_calls.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

struct CallResult {
  int answers = 0;
  absl::Status status;
  std::string reply;
  base::Pending pending;
};

class CallTest : public ::testing::Test {
 protected:
  CallTest() : server(world.Add()), client(world.Add()) {}

  // Answers each request with itself, twice.
  void Echo() {
    server.endpoint->SetCallHandler(Handler([](absl::Span<const uint8_t> request, Reply reply) {
      std::vector<uint8_t> twice(request.begin(), request.end());
      twice.insert(twice.end(), request.begin(), request.end());
      reply(twice);
    }));
  }

  std::shared_ptr<CallResult> Call(const std::string& request, base::Duration deadline = Seconds(5)) {
    auto result = std::make_shared<CallResult>();
    const auto* bytes = reinterpret_cast<const uint8_t*>(request.data());
    result->pending = client.endpoint->Call(server.service, absl::MakeConstSpan(bytes, request.size()), deadline,
                                            [result = result.get()](absl::StatusOr<absl::Span<const uint8_t>> reply) {
                                              ++result->answers;
                                              result->status = reply.status();
                                              if (reply.ok()) result->reply.assign(reply->begin(), reply->end());
                                            });
    EXPECT_EQ(result->answers, 0) << "answered inside the call";
    return result;
  }

  void Finish(const std::shared_ptr<CallResult>& result, base::Duration limit = Seconds(10)) {
    EXPECT_TRUE(world.RunUntil([&] { return result->answers > 0; }, limit));
    EXPECT_EQ(result->answers, 1);
  }

  World world;
  Node& server;
  Node& client;
};

TEST_F(CallTest, ARequestGetsItsReply) {
  Echo();
  for (size_t size : {0, 1, 100, 5000, 8000}) {
    const std::string request(size, static_cast<char>('a' + size % 26));
    auto result = Call(request);
    Finish(result);
    EXPECT_TRUE(result->status.ok()) << result->status;
    EXPECT_EQ(result->reply, request + request);
  }
}

TEST_F(CallTest, UrgentCallsGoBeforeThoseThatWaitForThePeer) {
  std::vector<std::string> came;
  server.endpoint->SetCallHandler(Handler([&](absl::Span<const uint8_t> request, Reply reply) {
    came.emplace_back(request.begin(), request.end());
    reply({});
  }));
  Finish(Call("connected"));
  std::vector<std::shared_ptr<CallResult>> results;
  for (int i = 0; i < 1000; ++i) results.push_back(Call(absl::StrCat(i)));
  std::vector<base::Pending> urgent;
  int answers = 0;
  for (const std::string text : {"first", "second"}) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
    urgent.push_back(client.endpoint->CallFirst(server.service, absl::MakeConstSpan(bytes, text.size()), Seconds(5),
                                                [&](const auto& reply) { answers += reply.ok(); }));
  }
  for (const auto& result : results) Finish(result);
  EXPECT_EQ(answers, 2);
  const auto first = std::find(came.begin(), came.end(), "first"),
             second = std::find(came.begin(), came.end(), "second");
  EXPECT_LE(first - came.begin(), 1 + static_cast<int>(OutgoingCalls::kMostQueued));
  EXPECT_EQ(second - first, 1) << "in their order";
  came.erase(came.begin());
  came.erase(std::remove_if(came.begin(), came.end(), [](const auto& one) { return !isdigit(one[0]); }), came.end());
  ASSERT_EQ(came.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(came[static_cast<size_t>(i)], absl::StrCat(i));
}

TEST_F(CallTest, RequestAndReplyMayHaveTheDocumentedLength) {
  server.endpoint->SetCallHandler(Handler([](absl::Span<const uint8_t> request, Reply reply) { reply(request); }));
  const std::string request(client.endpoint->max_call_size(), 'x');
  const uint32_t sealing = SecurityUnderTest().secrets == nullptr ? 0 : 16;
  EXPECT_EQ(request.size(), client.options.endpoint.slot_size - 64 - sealing);
  auto result = Call(request);
  Finish(result);
  EXPECT_TRUE(result->status.ok()) << result->status;
  EXPECT_EQ(result->reply, request);
  result = Call(request + "x");
  Finish(result);
  EXPECT_EQ(result->status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CallTest, AReplyThatIsTooLongIsAnError) {
  server.endpoint->SetCallHandler(
      Handler([](absl::Span<const uint8_t>, Reply reply) { reply(std::vector<uint8_t>(20000)); }));
  auto result = Call("x");
  Finish(result);
  EXPECT_EQ(result->status.code(), absl::StatusCode::kInternal) << result->status;
}

TEST_F(CallTest, WithoutAHandlerCallsAreRefused) {
  auto result = Call("x");
  Finish(result);
  EXPECT_EQ(result->status.code(), absl::StatusCode::kUnimplemented) << result->status;
}

TEST_F(CallTest, AReplyMayComeLater) {
  std::vector<std::pair<std::string, Reply>> kept;
  server.endpoint->SetCallHandler(Handler([&](absl::Span<const uint8_t> request, Reply reply) {
    kept.emplace_back(std::string(request.begin(), request.end()), std::move(reply));
  }));
  auto a = Call("a");
  auto b = Call("b");
  EXPECT_TRUE(world.RunUntil([&] { return kept.size() == 2; }, Seconds(1)));
  while (!kept.empty()) {  // the last first
    const auto [request, reply] = std::move(kept.back());
    kept.pop_back();
    reply(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(request.data()), request.size()));
    reply({});  // a second answer counts for nothing
  }
  Finish(a);
  Finish(b);
  EXPECT_EQ(a->reply, "a");
  EXPECT_EQ(b->reply, "b");
}

// The work on an answer, and whether it still exists.
class WorkTest : public CallTest {
 protected:
  struct Work final : base::Handle {
    explicit Work(WorkTest& t, Reply r) : test(t), reply(std::move(r)) { ++test.working_; }
    ~Work() override { --test.working_; }
    WorkTest& test;
    Reply reply;
  };

  // The server answers nothing by itself.
  void Hold() {
    server.endpoint->SetCallHandler([this](absl::Span<const uint8_t>, Reply reply) {
      auto work = std::make_unique<Work>(*this, std::move(reply));
      ++asked_;
      last_ = work.get();
      return work;
    });
  }
  bool AwaitWork(int count) {
    return world.RunUntil([&] { return working_ == count; }, Milliseconds(100));
  }
  void ReplyToLast() { last_->reply({}); }

  int asked_ = 0;
  int working_ = 0;
  Work* last_ = nullptr;
};

// Also where the reply is part of it.
TEST_F(WorkTest, EndsWithTheReply) {
  Hold();
  auto result = Call("x");
  ASSERT_TRUE(AwaitWork(1));
  ReplyToLast();
  Finish(result);
  EXPECT_EQ(working_, 0);
  EXPECT_TRUE(result->status.ok()) << result->status;
}

TEST_F(WorkTest, EndsWhenTheCallerDropsTheHandle) {
  Hold();
  auto result = Call("x");
  ASSERT_TRUE(AwaitWork(1));
  result->pending.reset();
  EXPECT_TRUE(AwaitWork(0));
  world.RunFor(Seconds(10));
  EXPECT_EQ(result->answers, 0);
  EXPECT_EQ(client.endpoint->counters().protocol_errors + server.endpoint->counters().protocol_errors, 0u);
}

TEST_F(WorkTest, EndsWithTheDeadline) {
  Hold();
  auto result = Call("x", Milliseconds(50));
  ASSERT_TRUE(AwaitWork(1));
  EXPECT_TRUE(AwaitWork(0));
}

TEST_F(WorkTest, EndsWithTheConnection) {
  Hold();
  auto result = Call("x");
  ASSERT_TRUE(AwaitWork(1));
  client.DropEndpoint();
  EXPECT_TRUE(AwaitWork(0));
  EXPECT_EQ(result->answers, 0);
  result->pending.reset();  // outlives its endpoint, and does nothing
}

TEST_F(WorkTest, EndsWithTheEndpoint) {
  Hold();
  auto result = Call("x");
  ASSERT_TRUE(AwaitWork(1));
  server.DropEndpoint();
  EXPECT_EQ(working_, 0);
}

TEST_F(WorkTest, AReplyThatCrossesTheCancellationCountsForNothing) {
  Hold();
  auto result = Call("x");
  ASSERT_TRUE(AwaitWork(1));
  ReplyToLast();
  result->pending.reset();
  world.RunFor(Seconds(1));
  EXPECT_EQ(result->answers, 0);
  EXPECT_EQ(client.endpoint->counters().late_messages, 1u);
  EXPECT_EQ(server.endpoint->counters().late_messages, 1u);
  EXPECT_EQ(client.endpoint->counters().protocol_errors + server.endpoint->counters().protocol_errors, 0u);
}

TEST_F(WorkTest, ACallThatIsCancelledBeforeItCouldBeSentIsNotSent) {
  Hold();
  auto cancelled = Call("x");
  cancelled->pending.reset();
  auto good = Call("y");
  ASSERT_TRUE(AwaitWork(1));
  EXPECT_EQ(asked_, 1);
  ReplyToLast();
  Finish(good);
  EXPECT_EQ(cancelled->answers, 0);
}

TEST_F(WorkTest, CancelledCallsMakeRoomAtOnce) {
  Hold();
  std::vector<std::shared_ptr<CallResult>> results;
  for (int i = 0; i < 1000; ++i) results.push_back(Call("x", Seconds(30)));
  ASSERT_TRUE(AwaitWork(256)) << "as many as are answered at once";
  for (const auto& result : results) result->pending.reset();
  ASSERT_TRUE(AwaitWork(0));
  auto good = Call("y", Seconds(30));
  ASSERT_TRUE(AwaitWork(1));
  EXPECT_EQ(asked_, 257);
  ReplyToLast();
  Finish(good, Milliseconds(10));
  EXPECT_TRUE(good->status.ok()) << good->status;
}

TEST_F(WorkTest, TheHandleMayBeDroppedInItsOwnCallback) {
  Echo();
  base::Pending pending;
  int answers = 0;
  pending = client.endpoint->Call(server.service, {}, Seconds(1), [&](absl::StatusOr<absl::Span<const uint8_t>>) {
    ++answers;
    pending.reset();
  });
  EXPECT_TRUE(world.RunUntil([&] { return answers == 1; }, Seconds(1)));
  world.RunFor(Seconds(1));
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(server.endpoint->counters().late_messages, 0u) << "nothing was cancelled";
}

TEST_F(CallTest, ARefusedCallCanBeCancelledToo) {
  auto result = Call(std::string(client.endpoint->max_call_size() + 1, 'x'));
  result->pending.reset();
  world.RunFor(Seconds(1));
  EXPECT_EQ(result->answers, 0);
}

TEST_F(CallTest, AReplyThatIsDroppedIsAnError) {
  server.endpoint->SetCallHandler(Handler([](absl::Span<const uint8_t>, Reply) {}));
  auto result = Call("x");
  Finish(result, Milliseconds(100));
  EXPECT_EQ(result->status.code(), absl::StatusCode::kUnavailable) << result->status;
}

TEST_F(CallTest, AReplyThatNeverComesEndsWithTheDeadline) {
  std::vector<Reply> kept;
  server.endpoint->SetCallHandler(
      Handler([&](absl::Span<const uint8_t>, Reply reply) { kept.push_back(std::move(reply)); }));
  auto result = Call("x", Milliseconds(300));
  Finish(result, Milliseconds(301));
  EXPECT_EQ(result->status.code(), absl::StatusCode::kDeadlineExceeded) << result->status;
  world.RunFor(Seconds(1));
  kept[0]({});  // far too late
  world.RunFor(Seconds(1));
  EXPECT_EQ(result->answers, 1);
  EXPECT_LE(client.endpoint->counters().late_messages, 1u);
  EXPECT_EQ(client.endpoint->counters().protocol_errors, 0u);
}

TEST_F(CallTest, ManyCallsAtOnce) {
  Echo();
  std::vector<std::shared_ptr<CallResult>> results;
  for (int i = 0; i < 3000; ++i) results.push_back(Call(absl::StrCat("call ", i)));
  for (int i = 0; i < 3000; ++i) {
    Finish(results[i]);
    ASSERT_TRUE(results[i]->status.ok()) << results[i]->status;
    EXPECT_EQ(results[i]->reply, absl::StrCat("call ", i, "call ", i));
  }
}

// Calls that nobody answers do not stop those that come after their deadline.
TEST_F(CallTest, AbandonedCallsMakeRoom) {
  std::vector<Reply> kept;
  server.endpoint->SetCallHandler(Handler([&](absl::Span<const uint8_t> request, Reply reply) {
    if (request.empty()) {
      kept.push_back(std::move(reply));
    } else {
      reply(request);
    }
  }));
  std::vector<std::shared_ptr<CallResult>> results;
  for (int i = 0; i < 1000; ++i) results.push_back(Call("", Milliseconds(500)));
  auto good = Call("good", Seconds(5));
  Finish(good, Seconds(3));
  EXPECT_TRUE(good->status.ok()) << good->status;
  for (auto& result : results) {
    Finish(result);
    EXPECT_EQ(result->status.code(), absl::StatusCode::kDeadlineExceeded);
  }
}

TEST_F(CallTest, APeerThatEndsFailsItsCalls) {
  std::vector<Reply> kept;
  server.endpoint->SetCallHandler(
      Handler([&](absl::Span<const uint8_t>, Reply reply) { kept.push_back(std::move(reply)); }));
  auto result = Call("x", Seconds(30));
  EXPECT_TRUE(world.RunUntil([&] { return kept.size() == 1; }, Seconds(1)));
  server.DropEndpoint();
  Finish(result, Seconds(1));
  EXPECT_EQ(result->status.code(), absl::StatusCode::kUnavailable) << result->status;
  kept[0]({});  // into nothing
}

TEST_F(CallTest, APeerThatVanishesFailsItsCallsSoon) {
  std::vector<Reply> kept;
  server.endpoint->SetCallHandler(
      Handler([&](absl::Span<const uint8_t>, Reply reply) { kept.push_back(std::move(reply)); }));
  auto result = Call("x", Seconds(30));
  EXPECT_TRUE(world.RunUntil([&] { return kept.size() == 1; }, Seconds(1)));
  const verbs::Address gone[] = {server.address};
  world.network->Partition(gone);
  Finish(result, Seconds(6));
  EXPECT_EQ(result->status.code(), absl::StatusCode::kUnavailable) << result->status;
}

// A lookup does not wait behind bulk data.
TEST_F(CallTest, ACallOvertakesALargeTransfer) {
  WorldOptions slow;
  slow.link.picoseconds_per_byte = 8000;
  World narrow(slow);
  Node& owner = narrow.Add();
  Node& puller = narrow.Add();
  owner.endpoint->SetCallHandler(Handler([](absl::Span<const uint8_t> request, Reply reply) { reply(request); }));
  for (Protocol protocol : {Protocol::kRead, Protocol::kWrite}) {
    auto outcome = puller.Pull(owner, owner.AddObject(8 << 20), protocol);
    narrow.RunFor(Milliseconds(10));
    bool answered = false;
    const base::Pending pending = puller.endpoint->Call(
        owner.service, {}, Seconds(1), [&](absl::StatusOr<absl::Span<const uint8_t>> reply) { answered = reply.ok(); });
    EXPECT_TRUE(narrow.RunUntil([&] { return answered; }, Milliseconds(40)));
    EXPECT_FALSE(outcome->done);
    ASSERT_TRUE(narrow.Finish(outcome));
    EXPECT_TRUE(outcome->right);
  }
}

}  // namespace
}  // namespace tokamak::transport::testing
