// Clients that reconnect: what becomes of calls, buffers, gets and subscriptions where the daemon
// goes away and comes back, and in a child of fork().
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/client/line.h"
#include "tests/client/fake_daemon.h"
#include "tests/client/samples.h"
#include "tokamak/client.h"
#include "tokamak/gets.h"

namespace tokamak::client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Bytes = FakeDaemon::Bytes;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kUnbounded(3600);  // of calls that must end before
constexpr std::chrono::seconds kLongEnough(60);

class ReconnectTest : public testing::Test {
 protected:
  static ClientOptions Reconnecting(std::chrono::nanoseconds call_timeout = kLongEnough) {
    ClientOptions options;
    options.reconnect = true;
    options.call_timeout = call_timeout;
    return options;
  }

  void Put(int n) { ASSERT_TRUE(client_.Put(SampleId(n), SampleBytes()).ok()); }
  StatusCode Contains() { return client_.Contains(SampleId(1)).status().code(); }

  // Calls until one reaches the daemon that is there again: attempts have their pause.
  Status CallUntilThere() {
    const auto limit = Clock::now() + kLongEnough;
    Status status;
    do {
      status = client_.Contains(SampleId(1)).status();
    } while (status.code() == StatusCode::kUnavailable && Clock::now() < limit);
    return status;
  }

  // From now on who says hello waits for its answer in vain.
  void IgnoreHellos() {
    daemon_.Screen(Kind::kHello, [this] {
      if (++hellos_ == 1) came_.set_value();
      return false;
    });
  }
  void CountHellos() {
    daemon_.Screen(Kind::kHello, [this] { return ++hellos_ > 0; });
  }
  void AwaitHello() { ASSERT_EQ(came_.get_future().wait_for(kLongEnough), std::future_status::ready); }

  std::atomic<int> hellos_{0};
  std::promise<void> came_;  // the first that is ignored
  FakeDaemon daemon_;
  Client client_ = *Client::Connect(daemon_.path(), Reconnecting());
};

TEST_F(ReconnectTest, TheNextCallAfterALossConnectsAnew) {
  for (int loss = 0; loss < 3; ++loss) {
    daemon_.Disconnect();
    EXPECT_EQ(client_.status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(client_.status().message(), HasSubstr("the next call connects anew"));
    EXPECT_EQ(CallUntilThere(), Status());
    EXPECT_EQ(client_.status(), Status());
    EXPECT_EQ(daemon_.connections(), 1u);
  }
  EXPECT_EQ(client_.node(), "fake");
  EXPECT_EQ(client_.capacity(), FakeDaemon::kCapacity);
}

// The client has not noticed the loss: the call finds out, and sends again what it could not send.
TEST_F(ReconnectTest, EachKindOfCallGoesToTheNextConnection) {
  Put(1);
  const std::vector<std::function<Status()>> kinds = {
      [&] { return client_.Put(SampleId(2), SampleBytes()); },
      [&] { return client_.Put(SampleId(3), Bytes(2 * PutOptions::kSmall)); },
      [&] { return client_.Create(SampleId(4), 10).status(); },
      [&] { return client_.Get(SampleId(1), kUnbounded).status(); },
      [&] { return client_.Wait({SampleId(1)}, 1, kUnbounded).status(); },
      [&] { return client_.List().status(); },
      [&] { return client_.Stat(SampleId(1)).status(); },
      [&] { return client_.Touch(SampleId(1)); },
      [&] { return client_.Nodes().status(); },
      [&] { return client_.Delete(SampleId(1)); },
  };
  for (const auto& kind : kinds) {
    client_ = *Client::Connect(daemon_.path(), Reconnecting());
    daemon_.Disconnect();
    EXPECT_EQ(kind(), Status());
  }
}

TEST_F(ReconnectTest, AnUnansweredCallIsNotSentAgain) {
  std::atomic<int> gets{0};
  daemon_.Screen(Kind::kGet, [&] { return ++gets > 0; });
  std::thread killer([&] {
    EXPECT_TRUE(daemon_.AwaitGets(1));
    daemon_.Disconnect();
  });
  const Status status = client_.Get(SampleId(1), kUnbounded).status();
  killer.join();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), StartsWith("not answered: the connection to the daemon"));
  EXPECT_EQ(CallUntilThere(), Status());
  EXPECT_EQ(gets, 1);
}

TEST_F(ReconnectTest, CallsWithoutADaemonSayHowToStartOne) {
  daemon_.GoAway();
  for (int i = 0; i < 3; ++i) {
    const Status status = client_.Contains(SampleId(1)).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("start one with tokd"));
  }
  daemon_.ComeBack();
  EXPECT_EQ(CallUntilThere(), Status());
}

TEST_F(ReconnectTest, ARefusingDaemonIsNotHammered) {
  daemon_.Answer(Kind::kHello, [this](const Header& header, const Bytes&) {
    ++hellos_;
    return EncodeError(header, absl::ResourceExhaustedError("too many clients"));
  });
  daemon_.Disconnect();
  const auto begin = Clock::now();
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(client_.Contains(SampleId(1)).status(), Status(StatusCode::kResourceExhausted, "too many clients"));
  }
  const auto pauses = (Clock::now() - begin) / std::chrono::nanoseconds(Line::kReconnectPause.nanoseconds());
  EXPECT_LE(hellos_, pauses + 1);
}

TEST_F(ReconnectTest, AConnectionLostAtOnceIsNotRemadeAtOnce) {
  CountHellos();
  const auto begin = Clock::now();
  while (Clock::now() < begin + std::chrono::milliseconds(300)) {
    daemon_.Disconnect();
    const StatusCode code = Contains();
    EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kUnavailable) << NameOf(code);
  }
  const auto pauses = (Clock::now() - begin) / std::chrono::nanoseconds(Line::kReconnectPause.nanoseconds());
  EXPECT_LE(hellos_, pauses + 1);
}

TEST_F(ReconnectTest, ThreadsThatCallMeanwhileWaitForOneAttempt) {
  std::promise<void> go;
  daemon_.Screen(Kind::kHello, [&, gone = go.get_future().share()] {
    if (++hellos_ == 1) came_.set_value();
    gone.wait();
    return true;
  });
  daemon_.Disconnect();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(Contains(), StatusCode::kOk); });
  }
  AwaitHello();
  go.set_value();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hellos_, 1);
}

TEST_F(ReconnectTest, ConnectingAndWaitingThreadsAreInterrupted) {
  IgnoreHellos();
  daemon_.Disconnect();
  const Interrupt first = *Interrupt::Make(), second = *Interrupt::Make();
  const auto get = [this](const Interrupt& interrupt) {
    GetOptions options;
    options.interrupt = &interrupt;
    return client_.Get(SampleId(1), kUnbounded, options).status().code();
  };
  std::thread connects([&] { EXPECT_EQ(get(first), StatusCode::kCancelled); });
  AwaitHello();
  second.Fire();
  EXPECT_EQ(get(second), StatusCode::kCancelled) << "it waits for the other thread";
  first.Fire();
  connects.join();
  CountHellos();
  EXPECT_EQ(Contains(), StatusCode::kOk)
      << "what was interrupted says nothing of the daemon, and is tried again at once";
}

TEST_F(ReconnectTest, AThreadCancelledWhileItConnectsLeavesConnectingToOthers) {
  IgnoreHellos();
  daemon_.Disconnect();
  pthread_t connects;
  const auto looks = [](void* client) -> void* {
    static_cast<Client*>(client)->Contains(SampleId(1)).ok();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&connects, nullptr, looks, &client_), 0);
  AwaitHello();
  CountHellos();
  std::thread waits([&] { EXPECT_EQ(Contains(), StatusCode::kOk); });
  ASSERT_EQ(pthread_cancel(connects), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(connects, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  waits.join();
}

TEST_F(ReconnectTest, ACallKeepsItsDeadlineWhileItConnects) {
  client_ = *Client::Connect(daemon_.path(), Reconnecting(std::chrono::milliseconds(50)));
  IgnoreHellos();
  daemon_.Disconnect();
  const auto begin = Clock::now();
  EXPECT_EQ(Contains(), StatusCode::kUnavailable);
  EXPECT_LT(Clock::now() - begin, kLongEnough / 2);
}

TEST_F(ReconnectTest, ABufferStaysReadableAndIsNotReleasedAtTheNextDaemon) {
  Put(1);
  Buffer buffer = *client_.Get(SampleId(1), kUnbounded);
  daemon_.Disconnect();
  ASSERT_EQ(Contains(), StatusCode::kOk);
  EXPECT_EQ(buffer.data(), Span<const uint8_t>(SampleBytes()));
  std::vector<base::ObjectId> released;
  daemon_.NoteReleases(released);
  buffer.Release();
  ASSERT_EQ(Contains(), StatusCode::kOk);
  EXPECT_TRUE(released.empty());
}

TEST_F(ReconnectTest, ABufferBeingFilledReportsThatItIsDropped) {
  MutableBuffer idle = *client_.Create(SampleId(1), 10), known = *client_.Create(SampleId(2), 10);
  daemon_.Disconnect();
  EXPECT_THAT(idle.Seal().message(),
              StartsWith("what this buffer was filled with is dropped, create the object anew: "));
  ASSERT_EQ(Contains(), StatusCode::kOk);
  EXPECT_THAT(known.Seal().message(),
              StartsWith("what this buffer was filled with is dropped, create the object anew: "));
  Put(1);
}

TEST_F(ReconnectTest, AnUnclaimedObjectIsPutOnTheNextConnection) {
  PutOptions unclaimed;
  unclaimed.claim = false;
  MutableBuffer buffer = *client_.Create(SampleId(1), 10, {}, unclaimed);
  daemon_.Disconnect();
  EXPECT_EQ(buffer.Seal(), Status());
  EXPECT_TRUE(*client_.Contains(SampleId(1)));
}

TEST_F(ReconnectTest, GetsEndWithTheirConnectionAndGoOnWithTheNext) {
  Gets gets(client_);
  pollfd polled = {*gets.descriptor(), POLLIN, 0};
  std::set<uint64_t> numbers = {*gets.Begin(SampleId(7), kUnbounded), *gets.Begin(SampleId(8), kUnbounded)};
  ASSERT_TRUE(gets.Send().ok());
  ASSERT_TRUE(daemon_.AwaitGets(2));
  daemon_.Disconnect();
  ASSERT_EQ(Contains(), StatusCode::kOk);
  const Result<uint64_t> begun = gets.Begin(SampleId(1), kUnbounded);
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_TRUE(numbers.insert(*begun).second) << "a number of its own";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(gets.Next(kUnbounded)->buffer.status().code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(gets.Next(Timeout()).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(poll(&polled, 1, 0), 0) << "the old connection's end is not told any more";
  Put(1);
  EXPECT_EQ(poll(&polled, 1, 60'000), 1);
  const Result<Gets::Answer> answer = gets.Next(kUnbounded);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->number, *begun);
  EXPECT_EQ(answer->buffer->data(), Span<const uint8_t>(SampleBytes()));
}

TEST_F(ReconnectTest, GetsThatAreBegunAfterAnUnnoticedLossAreAnswered) {
  Put(1);
  Gets gets(client_);
  daemon_.Disconnect();
  ASSERT_TRUE(gets.Begin(SampleId(1), kUnbounded).ok());
  EXPECT_TRUE(gets.Next(kUnbounded)->buffer.ok());
}

TEST_F(ReconnectTest, ASubscriptionEndsAndTheNextIsMade) {
  Subscription subscription = *client_.Subscribe();
  daemon_.Disconnect();
  EXPECT_EQ(subscription.Next(kUnbounded).status().code(), StatusCode::kUnavailable);
  subscription = *client_.Subscribe();
  Put(1);
  EXPECT_TRUE(subscription.Next(kUnbounded).ok());
}

TEST_F(ReconnectTest, TheNamesOfItsNodeStay) {
  ClientOptions options = Reconnecting();
  options.access = Access::kRead;
  Client client = *Client::Connect(daemon_.path(), options);
  const std::string& before = client.node();
  daemon_.Answer(Kind::kHello, [](const Header& header, const Bytes&) {
    WelcomeReply welcome;
    welcome.arena_size = FakeDaemon::kCapacity;
    welcome.node = "renamed";
    return Encode(header.request_id, welcome);
  });
  daemon_.Disconnect();
  EXPECT_TRUE(client.Contains(SampleId(1)).ok());
  EXPECT_EQ(client.node(), "renamed");
  EXPECT_EQ(before, "fake");
}

// ---- fork

TEST_F(ReconnectTest, AForkedChildConnectsAnewAndItsParentGoesOn) {
  Put(1);
  Gets gets(client_);
  std::optional<MutableBuffer> unsealed = *client_.Create(SampleId(2), 5);
  // One that reads, and one that waits for it, at the moment of the fork.
  std::vector<std::thread> threads;
  for (int n = 4; n <= 5; ++n) {
    threads.emplace_back([this, n] { EXPECT_TRUE(client_.Get(SampleId(n), kUnbounded).ok()); });
  }
  ASSERT_TRUE(daemon_.AwaitGets(2));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool well = client_.status().code() == StatusCode::kFailedPrecondition;
    well &= client_.Get(SampleId(1), kUnbounded).ok() && client_.status().ok() && client_.node() == "fake";
    well &= unsealed->Seal().code() == StatusCode::kFailedPrecondition;
    well &= gets.Begin(SampleId(1), kUnbounded).status().code() == StatusCode::kFailedPrecondition;
    Gets own(client_);
    well &= own.Begin(SampleId(1), kUnbounded).ok() && own.Next(kUnbounded)->buffer.ok();
    _exit(well ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(unsealed->Seal(), Status());
  for (int n = 4; n <= 5; ++n) Put(n);
  for (std::thread& thread : threads) thread.join();
}

// Its socket too: else the daemon would not see the parent's end.
TEST_F(ReconnectTest, AConnectedChildKeepsNothingOfItsParentsConnection) {
  std::optional<Client> mine = *Client::Connect(daemon_.path(), Reconnecting());
  int connected[2], done[2];
  ASSERT_EQ(pipe(connected) | pipe(done), 0);
  std::thread waits([&] { EXPECT_TRUE(mine->Get(SampleId(4), kUnbounded).ok()); });
  ASSERT_TRUE(daemon_.AwaitGets(1));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    char byte = mine->Contains(SampleId(1)).ok() ? 1 : 0;
    if (write(connected[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  char well = 0;
  ASSERT_EQ(read(connected[0], &well, 1), 1);
  EXPECT_EQ(well, 1);
  Put(4);
  waits.join();
  EXPECT_EQ(daemon_.connections(), 3u);
  mine.reset();
  const auto limit = Clock::now() + kLongEnough;
  while (daemon_.connections() != 2u && Clock::now() < limit) std::this_thread::yield();
  EXPECT_EQ(daemon_.connections(), 2u) << "the child's, and the fixture's";
  ASSERT_EQ(write(done[1], &well, 1), 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int end : {connected[0], connected[1], done[0], done[1]}) close(end);
}

}  // namespace
}  // namespace tokamak::client
