// Calls that wait and are interrupted, what programs poll for, and what a forked child may do.
#include "tokamak/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/client/daemon_connection.h"
#include "tests/client/fake_daemon.h"
#include "tests/client/samples.h"
#include "tokamak/client.h"
#include "tokamak/gets.h"

namespace tokamak::client {
namespace {

using Bytes = FakeDaemon::Bytes;

constexpr std::chrono::seconds kForever(3600);  // of calls that must end before
constexpr std::chrono::nanoseconds kWithoutWaiting(0);
constexpr int kPatience = 60'000;  // milliseconds

bool Readable(int descriptor, int milliseconds = 0) {
  pollfd polled = {descriptor, POLLIN, 0};
  return poll(&polled, 1, milliseconds) > 0;
}

class InterruptTest : public testing::Test {
 protected:
  InterruptTest() {
    get_.interrupt = &interrupt_;
    wait_.interrupt = &interrupt_;
    put_.interrupt = &interrupt_;
  }

  void Put(int n) { ASSERT_TRUE(client_.Put(SampleId(n), SampleBytes()).ok()); }
  // Awaits that earlier messages have been handled.
  void Settle() { ASSERT_TRUE(client_.Contains(SampleId(0)).ok()); }
  StatusCode Get(int n) { return client_.Get(SampleId(n), kForever, get_).status().code(); }

  const Interrupt interrupt_ = *Interrupt::Make();  // outlives the daemon, whose thread may be firing it
  FakeDaemon daemon_;
  Client client_ = *Client::Connect(daemon_.path());
  GetOptions get_;
  WaitOptions wait_;
  PutOptions put_;
};

TEST_F(InterruptTest, ACallGoesOnIfItsInterruptHandlerAllowsIt) {
  Interrupt asking = *Interrupt::Make();
  std::promise<void> was_asked;
  asking.AskFirst([&] {
    asking.Reset();
    EXPECT_TRUE(client_.Contains(SampleId(0)).ok()) << "nothing is locked";
    was_asked.set_value();
    return true;
  });
  get_.interrupt = &asking;
  std::thread firing([&] {
    EXPECT_TRUE(daemon_.AwaitGets(1));
    asking.Fire();
    was_asked.get_future().wait();
    Client other = *Client::Connect(daemon_.path());
    EXPECT_TRUE(other.Put(SampleId(1), SampleBytes()).ok());
  });
  EXPECT_EQ(Get(1), StatusCode::kOk);
  firing.join();
}

TEST_F(InterruptTest, ACallEndsIfItsInterruptHandlerDemandsIt) {
  Interrupt asking = *Interrupt::Make();
  asking.AskFirst([] { return false; });
  get_.interrupt = &asking;
  asking.Fire();
  EXPECT_EQ(Get(1), StatusCode::kCancelled);
}

TEST_F(InterruptTest, AnInterruptStaysFiredUntilItIsReset) {
  EXPECT_FALSE(interrupt_.fired());
  interrupt_.Fire();
  interrupt_.Fire();
  EXPECT_TRUE(interrupt_.fired());
  EXPECT_TRUE(Readable(interrupt_.descriptor()));
  EXPECT_EQ(Get(1), StatusCode::kCancelled);
  EXPECT_EQ(Get(1), StatusCode::kCancelled);
  interrupt_.Reset();
  EXPECT_FALSE(interrupt_.fired());
  Put(1);
  EXPECT_EQ(Get(1), StatusCode::kOk);
  ASSERT_EQ(write(interrupt_.trigger(), "x", 1), 1);
  EXPECT_TRUE(interrupt_.fired());
}

TEST_F(InterruptTest, MoreInterruptsThanAPipeHoldsAreResetToo) {
  for (int i = 0; i < 70'000; ++i) interrupt_.Fire();
  interrupt_.Reset();
  EXPECT_FALSE(interrupt_.fired());
}

TEST_F(InterruptTest, AGetThatWaitsEndsHereAndAtTheDaemon) {
  std::thread other([this] {
    EXPECT_TRUE(daemon_.AwaitGets(1));
    interrupt_.Fire();
  });
  EXPECT_EQ(Get(1), StatusCode::kCancelled);
  other.join();
  Settle();
  EXPECT_EQ(daemon_.statistics().waiting, 0u);
  EXPECT_TRUE(client_.status().ok());
}

TEST_F(InterruptTest, ASignalHandlerFiresAnInterrupt) {
  static const Interrupt* in_handler;
  in_handler = &interrupt_;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { in_handler->Fire(); };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::thread other([this] {
    EXPECT_TRUE(daemon_.AwaitGets(1));
    kill(getpid(), SIGUSR1);
  });
  EXPECT_EQ(Get(1), StatusCode::kCancelled);
  other.join();
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST_F(InterruptTest, AThreadThatSleepsWhileAnotherReadsIsInterruptedToo) {
  std::thread reader([this] { EXPECT_TRUE(client_.Get(SampleId(1), kForever).ok()); });
  ASSERT_TRUE(daemon_.AwaitGets(1));
  std::thread sleeper([this] { EXPECT_EQ(Get(2), StatusCode::kCancelled); });
  ASSERT_TRUE(daemon_.AwaitGets(2));
  interrupt_.Fire();
  sleeper.join();
  Put(1);
  reader.join();
}

TEST_F(InterruptTest, AThreadThatSleepsWhileAnotherReadsGetsItsAnswerAndReadsOn) {
  std::thread reader([this] { EXPECT_TRUE(client_.Get(SampleId(1), kForever).ok()); });
  ASSERT_TRUE(daemon_.AwaitGets(1));
  std::thread sleeper([this] { EXPECT_EQ(Get(2), StatusCode::kOk); });
  std::thread last([this] { EXPECT_EQ(Get(3), StatusCode::kOk); });
  ASSERT_TRUE(daemon_.AwaitGets(3));
  Put(2);
  sleeper.join();
  Put(1);
  reader.join();
  Put(3);
  last.join();
}

TEST_F(InterruptTest, AnInterruptedReaderLeavesReadingToOthers) {
  std::thread reader([this] { EXPECT_EQ(Get(1), StatusCode::kCancelled); });
  ASSERT_TRUE(daemon_.AwaitGets(1));
  std::thread other([this] { EXPECT_TRUE(client_.Get(SampleId(2), kForever).ok()); });
  ASSERT_TRUE(daemon_.AwaitGets(2));
  interrupt_.Fire();
  reader.join();
  Put(2);
  other.join();
}

TEST_F(InterruptTest, OneInterruptEndsManyCallsOfManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([this, i] { EXPECT_EQ(Get(i), StatusCode::kCancelled); });
  ASSERT_TRUE(daemon_.AwaitGets(4));
  interrupt_.Fire();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(InterruptTest, ObjectsOfAnInterruptedGetAreReturned) {
  Put(1);
  interrupt_.Fire();
  for (int i = 0; i < 100; ++i) Get(1);  // OK where the daemon was faster
  Settle();
  Settle();  // behind what was given back
  EXPECT_EQ(daemon_.statistics().pins, 0u);
}

// As many as calls may be left unanswered: the next finds out that they were answered.
TEST_F(InterruptTest, InterruptedGetsLeaveNothingBehind) {
  interrupt_.Fire();
  for (size_t i = 0; i < 2 * DaemonConnection::kMaxAbandoned; ++i) EXPECT_NE(Get(1), StatusCode::kOk);
  while (!client_.Contains(SampleId(1)).ok()) std::this_thread::yield();
  EXPECT_EQ(daemon_.statistics().waiting, 0u);
}

TEST_F(InterruptTest, AWaitIsCancelledAtTheDaemon) {
  uint64_t waiting = 0, cancelled = 0;
  daemon_.Answer(Kind::kWait, [&](const Header& header, const Bytes&) {
    waiting = header.request_id;
    interrupt_.Fire();
    return std::nullopt;
  });
  daemon_.Answer(Kind::kCancel, [&](const Header&, const Bytes& frame) {
    cancelled = DecodeBody<CancelRequest>(frame)->request_id;
    return std::nullopt;
  });
  EXPECT_EQ(client_.Wait({SampleId(1)}, 1, kForever, wait_).status().code(), StatusCode::kCancelled);
  Settle();
  EXPECT_EQ(cancelled, waiting);
}

TEST_F(InterruptTest, TheReservationOfAnInterruptedCreateIsAborted) {
  uint64_t unanswered = 0;
  daemon_.Answer(Kind::kCreate, [&](const Header& header, const Bytes&) {
    unanswered = header.request_id;
    interrupt_.Fire();
    return std::nullopt;
  });
  EXPECT_EQ(client_.Create(SampleId(1), 10, {}, put_).status().code(), StatusCode::kCancelled);
  ObjectId aborted;
  daemon_.Answer(Kind::kAbort, [&](const Header&, const Bytes& frame) {
    aborted = DecodeBody<AbortRequest>(frame)->id;
    return std::nullopt;
  });
  daemon_.SendToAll(Encode(unanswered, CreateReply()));
  Settle();
  Settle();
  EXPECT_EQ(aborted, SampleId(1));
}

TEST_F(InterruptTest, APutThatWaitsForRoomEnds) {
  daemon_.Answer(Kind::kCreateAndSeal, [&](const Header&, const Bytes&) {
    interrupt_.Fire();
    return std::nullopt;
  });
  EXPECT_EQ(client_.Put(SampleId(1), SampleBytes(), {}, put_).code(), StatusCode::kCancelled);
}

TEST_F(InterruptTest, NextOfGetsEndsAndTheGetsGoOn) {
  Gets gets(client_);
  ASSERT_TRUE(gets.Begin(SampleId(1), kForever).ok());
  std::thread other([this] {
    EXPECT_TRUE(daemon_.AwaitGets(1));
    interrupt_.Fire();
  });
  EXPECT_EQ(gets.Next(kForever, &interrupt_).status().code(), StatusCode::kCancelled);
  other.join();
  EXPECT_EQ(gets.pending(), 1u);
  interrupt_.Reset();
  Put(1);
  EXPECT_TRUE(gets.Next(kForever, &interrupt_)->buffer.ok());
}

TEST_F(InterruptTest, NextOfASubscriptionEndsAndTheSubscriptionGoesOn) {
  Subscription subscription = *client_.Subscribe();
  std::thread other([this] { interrupt_.Fire(); });
  EXPECT_EQ(subscription.Next(kForever, &interrupt_).status().code(), StatusCode::kCancelled);
  other.join();
  interrupt_.Reset();
  Put(1);
  EXPECT_EQ(subscription.Next(kForever, &interrupt_)->events.at(0).id, SampleId(1));
}

// ---- descriptors

TEST_F(InterruptTest, TheDescriptorOfGetsIsReadableWhileTheyHaveSomething) {
  Gets gets(client_);
  const int descriptor = *gets.descriptor();
  EXPECT_EQ(*gets.descriptor(), descriptor);
  for (int n = 1; n <= 3; ++n) ASSERT_TRUE(gets.Begin(SampleId(n), kForever).ok());
  ASSERT_TRUE(gets.Send().ok());
  ASSERT_TRUE(daemon_.AwaitGets(3));
  EXPECT_FALSE(Readable(descriptor));
  Client elsewhere = *Client::Connect(daemon_.path());
  for (int n = 1; n <= 2; ++n) ASSERT_TRUE(elsewhere.Put(SampleId(n), SampleBytes()).ok());
  // The second may come after the first was taken: then once in vain.
  for (int came = 0, in_vain = 0; came < 2;) {
    ASSERT_TRUE(Readable(descriptor, kPatience));
    const auto next = gets.Next(kWithoutWaiting);
    ASSERT_TRUE(next.ok() || next.status().code() == StatusCode::kDeadlineExceeded) << next.status().message();
    next.ok() ? ++came : ++in_vain;
    ASSERT_LE(in_vain, 1);
  }
  EXPECT_EQ(gets.Next(kWithoutWaiting).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(Readable(descriptor));
}

TEST_F(InterruptTest, TheDescriptorOfGetsIsReadableForAnswersReadByAnotherThread) {
  Gets gets(client_);
  const int descriptor = *gets.descriptor();
  ASSERT_TRUE(gets.Begin(SampleId(1), kForever).ok());
  ASSERT_TRUE(gets.Send().ok());
  ASSERT_TRUE(daemon_.AwaitGets(1));
  Put(1);
  Settle();  // the daemon had answered before, and this thread has read it
  ASSERT_TRUE(Readable(descriptor));
  EXPECT_TRUE(gets.Next(kWithoutWaiting)->buffer.ok());
}

TEST_F(InterruptTest, TheDescriptorOfGetsIsReadableForAnswersReadByCancelOrBegin) {
  Gets gets(client_);
  const int descriptor = *gets.descriptor();
  ASSERT_TRUE(gets.Begin(SampleId(1), kForever).ok());
  const uint64_t second = *gets.Begin(SampleId(1), kForever);
  Put(1);
  ASSERT_TRUE(gets.Send().ok());
  Settle();
  gets.Cancel(second);
  EXPECT_EQ(gets.ended(), 1u);
  EXPECT_TRUE(Readable(descriptor));
  EXPECT_TRUE(gets.Next(kWithoutWaiting)->buffer.ok());
}

TEST_F(InterruptTest, TheDescriptorOfGetsIsReadableWhenTheDaemonHasGone) {
  Gets gets(client_);
  const int descriptor = *gets.descriptor();
  ASSERT_TRUE(gets.Begin(SampleId(1), kForever).ok());
  ASSERT_TRUE(gets.Send().ok());
  daemon_.Disconnect();
  ASSERT_TRUE(Readable(descriptor, kPatience));
  EXPECT_EQ(gets.Next(kWithoutWaiting)->buffer.status().code(), StatusCode::kUnavailable);
}

TEST_F(InterruptTest, TheDescriptorOfASubscriptionIsReadableWhenItHasEvents) {
  Subscription subscription = *client_.Subscribe();
  EXPECT_FALSE(Readable(subscription.descriptor()));
  EXPECT_EQ(subscription.Next(kWithoutWaiting).status().code(), StatusCode::kDeadlineExceeded);
  Put(1);
  ASSERT_TRUE(Readable(subscription.descriptor(), kPatience));
  EXPECT_TRUE(subscription.Next(kWithoutWaiting).ok());
  EXPECT_FALSE(Readable(subscription.descriptor()));
}

// ---- fork

// Returns the result of `in_child`, run in a child, as its exit code.
int InChild(const std::function<bool()>& in_child) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(in_child() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(InterruptTest, AForkedChildMayDropInheritedHandles) {
  Put(1);
  auto client = std::make_optional<Client>(*Client::Connect(daemon_.path()));
  auto sealed = std::make_optional<Buffer>(*client->Get(SampleId(1), kForever));
  auto unsealed = std::make_optional<MutableBuffer>(*client->Create(SampleId(2), 5));
  auto subscription = std::make_optional<Subscription>(*client->Subscribe());
  auto gets = std::make_optional<Gets>(*client);
  ASSERT_TRUE(gets->descriptor().ok());
  ASSERT_TRUE(gets->Begin(SampleId(3), kForever).ok());
  ASSERT_TRUE(gets->Send().ok());
  ASSERT_TRUE(daemon_.AwaitGets(1));
  // One that reads, and one that waits for it, at the moment of the fork.
  std::vector<std::thread> threads;
  for (int n = 4; n <= 5; ++n) {
    threads.emplace_back([&client, n] { EXPECT_TRUE(client->Get(SampleId(n), kForever).ok()); });
  }
  ASSERT_TRUE(daemon_.AwaitGets(3));

  EXPECT_EQ(InChild([&] {
              bool well = sealed->data() == Span<const uint8_t>(SampleBytes());
              well &= client->Contains(SampleId(1)).status().code() == StatusCode::kFailedPrecondition;
              well &= client->status().code() == StatusCode::kFailedPrecondition;
              well &= subscription->Next(kForever).status().code() == StatusCode::kFailedPrecondition;
              gets.reset();
              sealed.reset();
              unsealed.reset();
              subscription.reset();
              client.reset();
              Result<Client> anew = Client::Connect(daemon_.path());
              return well && anew.ok() && *anew->Contains(SampleId(1));
            }),
            0);

  Settle();
  EXPECT_EQ(daemon_.statistics().pins, 1u) << "the parent's";
  unsealed->data()[0] = 7;
  EXPECT_EQ(unsealed->Seal(), Status());
  for (int n = 3; n <= 5; ++n) Put(n);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(gets->Next(kForever)->buffer.ok());
  while (true) {
    const Result<Events> events = subscription->Next(kForever);
    ASSERT_TRUE(events.ok()) << events.status();
    if (events->events.back().id == SampleId(5)) break;
  }
}

}  // namespace
}  // namespace tokamak::client
