// Gets: many under way at once, of one program without further threads.
#include "tokamak/gets.h"

#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_daemon.h"
#include "tests/client/samples.h"

namespace tokamak::client {
namespace {

using testing::HasSubstr;
using Bytes = FakeDaemon::Bytes;

constexpr std::chrono::nanoseconds kSoonEnough =
    std::chrono::seconds(10);  // long before it, unless something is broken
constexpr std::chrono::nanoseconds kNow(0);
constexpr int kMost = static_cast<int>(Gets::kMaxPending);

class GetsTest : public testing::Test {
 protected:
  void Put(int n) { ASSERT_TRUE(client_.Put(SampleId(n), SampleBytes()).ok()); }
  uint64_t Begin(Gets& gets, int n, Timeout timeout = kSoonEnough) { return *gets.Begin(SampleId(n), timeout); }
  // Awaits that earlier messages have been handled, and their answers read.
  void Settle() { ASSERT_TRUE(client_.Contains(SampleId(0)).ok()); }
  uint64_t pins() {
    Settle();
    return daemon_.statistics().pins;
  }
  void AwaitPins(uint64_t count) {
    while (daemon_.statistics().pins != count) std::this_thread::yield();
  }

  FakeDaemon daemon_;
  Client client_ = *Client::Connect(daemon_.path());
};

TEST_F(GetsTest, AnswersComeInTheOrderOfTheObjects) {
  Gets gets(client_);
  const uint64_t first = Begin(gets, 1), second = Begin(gets, 2);
  ASSERT_TRUE(gets.Send().ok());
  Put(2);
  const Gets::Answer two = *gets.Next(kSoonEnough);
  Put(1);
  const Gets::Answer one = *gets.Next(kSoonEnough);
  EXPECT_EQ(two.number, second);
  EXPECT_EQ(two.id, SampleId(2));
  EXPECT_EQ(two.buffer->data(), Span<const uint8_t>(SampleBytes()));
  EXPECT_EQ(one.number, first);
  EXPECT_EQ(gets.pending(), 0u);
  EXPECT_EQ(pins(), 2u);
}

TEST_F(GetsTest, NextMayPoll) {
  Gets gets(client_);
  Begin(gets, 1);
  EXPECT_EQ(gets.Next(kNow).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(gets.pending(), 1u);
  Put(1);
  AwaitPins(1);
  Settle();
  EXPECT_TRUE(gets.Next(kNow)->buffer.ok());
  EXPECT_EQ(gets.Next(kSoonEnough).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(GetsTest, EachGetEndsByItsOwnTimeOut) {
  Gets gets(client_);
  const uint64_t patient = Begin(gets, 1);
  const uint64_t hasty = Begin(gets, 2, std::chrono::milliseconds(20));
  const Gets::Answer ended = *gets.Next(kSoonEnough);
  EXPECT_EQ(ended.number, hasty);
  EXPECT_EQ(ended.buffer.status().code(), StatusCode::kDeadlineExceeded);
  Put(1);
  EXPECT_EQ(gets.Next(kSoonEnough)->number, patient);
}

TEST_F(GetsTest, GetsUnderWayAreBoundedByThousands) {
  Gets gets(client_);
  for (int i = 0; i < kMost; ++i) Begin(gets, i);
  const Status full = gets.Begin(SampleId(kMost), kSoonEnough).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("await some"));
  std::vector<PutObject> objects;
  for (int i = 0; i < kMost; ++i) objects.push_back({SampleId(i), SampleBytes(), {}});
  for (const Status& status : client_.Put(objects)) ASSERT_TRUE(status.ok());
  std::set<uint64_t> numbers;
  std::vector<Buffer> buffers;
  while (gets.pending() > 0) {
    Gets::Answer answer = *gets.Next(kSoonEnough);
    ASSERT_TRUE(answer.buffer.ok()) << answer.buffer.status();
    numbers.insert(answer.number);
    buffers.push_back(*std::move(answer.buffer));
  }
  EXPECT_EQ(numbers.size(), size_t{kMost});
  EXPECT_TRUE(gets.Begin(SampleId(0), kSoonEnough).ok()) << "there is room again";
  EXPECT_EQ(pins(), uint64_t{kMost});
  Buffer::ReleaseAll(buffers);
  EXPECT_EQ(pins(), 0u);
}

TEST_F(GetsTest, CancelledGetsAreOverAtTheDaemonToo) {
  Gets gets(client_);
  const uint64_t cancelled = Begin(gets, 1), kept = Begin(gets, 2);
  ASSERT_TRUE(gets.Send().ok());
  ASSERT_TRUE(daemon_.AwaitGets(2));
  gets.Cancel(cancelled);
  ASSERT_TRUE(gets.Send().ok());
  Settle();
  EXPECT_EQ(daemon_.statistics().waiting, 1u);
  Put(1);
  Put(2);
  EXPECT_EQ(gets.Next(kSoonEnough)->number, kept);
  EXPECT_EQ(gets.pending(), 0u);
  EXPECT_EQ(pins(), 0u);
}

TEST_F(GetsTest, TheDaemonHearsOfACancelledGetThoughTheProgramIsIdle) {
  Gets gets(client_);
  const uint64_t cancelled = Begin(gets, 1);
  ASSERT_TRUE(gets.Send().ok());
  ASSERT_TRUE(daemon_.AwaitGets(1));
  gets.Cancel(cancelled);
  Settle();
  EXPECT_EQ(daemon_.statistics().waiting, 0u);
}

TEST_F(GetsTest, CancellingAllMakesRoomForAsMany) {
  Gets gets(client_);
  for (int round = 0; round < 2; ++round) {
    std::vector<uint64_t> numbers;
    while (numbers.size() < size_t{kMost}) {
      const auto begun = gets.Begin(SampleId(static_cast<int>(numbers.size())), kSoonEnough);
      if (begun.ok()) numbers.push_back(*begun);  // else the daemon has not said yet that those before are over
    }
    for (const uint64_t number : numbers) gets.Cancel(number);
    EXPECT_EQ(gets.pending(), 0u);
  }
  ASSERT_TRUE(gets.Send().ok());
  Settle();
  EXPECT_EQ(daemon_.statistics().waiting, 0u);
}

// In the three places where an answer can be when the program does not want it any more.
TEST_F(GetsTest, ObjectsOfACancelledGetAreReturned) {
  Put(1);
  Gets gets(client_);
  const uint64_t on_its_way = Begin(gets, 1);
  ASSERT_TRUE(gets.Send().ok());
  AwaitPins(1);
  gets.Cancel(on_its_way);
  ASSERT_TRUE(gets.Send().ok());
  Settle();
  EXPECT_EQ(pins(), 0u);

  const uint64_t arrived = Begin(gets, 1);
  ASSERT_TRUE(gets.Send().ok());
  Settle();
  EXPECT_EQ(pins(), 1u);
  gets.Cancel(arrived);
  EXPECT_EQ(gets.pending(), 0u);
  EXPECT_EQ(pins(), 0u);

  const uint64_t wanted = Begin(gets, 1), looked_at = Begin(gets, 1);
  ASSERT_TRUE(gets.Send().ok());
  AwaitPins(2);
  Settle();
  EXPECT_EQ(gets.Next(kSoonEnough)->number, wanted);
  gets.Cancel(looked_at);
  EXPECT_EQ(gets.pending(), 0u);
  EXPECT_EQ(pins(), 0u);
}

TEST_F(GetsTest, DroppingTheGetsCancelsAll) {
  Put(1);
  {
    Gets gets(client_);
    Begin(gets, 1);
    Begin(gets, 2);
    ASSERT_TRUE(gets.Send().ok());
    AwaitPins(1);
    Settle();
    Begin(gets, 1);  // never sent
  }
  Settle();
  EXPECT_EQ(pins(), 0u);
  EXPECT_EQ(daemon_.statistics().waiting, 0u);
}

TEST_F(GetsTest, ADyingDaemonEndsEachGet) {
  Gets gets(client_);
  for (int i = 0; i < 100; ++i) Begin(gets, i);
  ASSERT_TRUE(gets.Send().ok());
  ASSERT_TRUE(daemon_.AwaitGets(100));
  daemon_.Disconnect();
  for (int i = 0; i < 100; ++i) {
    const auto answer = gets.Next(kSoonEnough);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->buffer.status().code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(gets.Next(kSoonEnough).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(gets.Begin(SampleId(1), kSoonEnough).status(), client_.status());
}

TEST_F(GetsTest, ASilentDaemonEndsTheGetsInTimeAndLateObjectsAreReturned) {
  ClientOptions impatient;
  impatient.call_timeout = std::chrono::milliseconds(50);
  Client client = *Client::Connect(daemon_.path(), impatient);
  Put(1);
  uint64_t unanswered = 0;
  daemon_.Answer(Kind::kGet, [&](const Header& header, const Bytes&) {
    unanswered = header.request_id;
    return std::nullopt;
  });
  Gets gets(client);
  ASSERT_TRUE(gets.Begin(SampleId(1), kNow).ok());
  const Result<Gets::Answer> answer = gets.Next(kSoonEnough);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->buffer.status().message(), HasSubstr("did not answer in time"));

  std::vector<ObjectId> released;
  daemon_.NoteReleases(released);
  GetReply late;
  late.entries.resize(1);
  daemon_.SendToAll(Encode(unanswered, late));
  EXPECT_TRUE(client.Contains(SampleId(1)).ok());
  EXPECT_TRUE(client.Contains(SampleId(1)).ok()) << "behind the release";
  EXPECT_EQ(released, std::vector<ObjectId>{SampleId(1)});
}

TEST_F(GetsTest, AMalformedAnswerEndsTheConnection) {
  daemon_.Answer(Kind::kGet, [](const Header& header, const Bytes&) {
    Header reply;
    reply.kind = GetReply::kKind;
    reply.request_id = header.request_id;
    return Frame(reply, Bytes{7});
  });
  Gets gets(client_);
  Begin(gets, 1);
  EXPECT_FALSE(gets.Next(kSoonEnough)->buffer.ok());
  EXPECT_EQ(client_.status().code(), StatusCode::kUnavailable);
}

TEST_F(GetsTest, ThreadsHaveTheirOwnOverOneConnection) {
  constexpr int kEach = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this, t] {
      Gets gets(client_);
      for (int i = 0; i < kEach; ++i) Begin(gets, t * kEach + i);
      ASSERT_TRUE(gets.Send().ok());
      for (int i = 0; i < kEach; ++i) Put(t * kEach + i);
      while (gets.pending() > 0) {
        const auto answer = gets.Next(kSoonEnough);
        ASSERT_TRUE(answer.ok() && answer->buffer.ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pins(), 0u);
}

}  // namespace
}  // namespace tokamak::client
