// System calls of a program for each call, counted: one each way. Only this thread's are counted,
// so the daemon's are not.
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/client/fake_daemon.h"
#include "tests/client/samples.h"
#include "tokamak/client.h"
#include "tokamak/gets.h"

namespace {

struct Calls {
  int sends = 0;
  int receives = 0;
  int waits = 0;  // of these, those that may sleep
  int polls = 0;
};
thread_local Calls calls;

}  // namespace

// In place of the C library's.
extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  ++calls.sends;
  return syscall(SYS_sendmsg, fd, message, flags);
}
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  ++calls.receives;
  if ((flags & MSG_DONTWAIT) == 0) ++calls.waits;
  return syscall(SYS_recvmsg, fd, message, flags);
}
extern "C" int ppoll(pollfd* polled, nfds_t count, const timespec* wait, const sigset_t*) {
  ++calls.polls;
  timespec left = wait == nullptr ? timespec{} : *wait;  // the kernel writes to it
  return static_cast<int>(syscall(SYS_ppoll, polled, count, wait == nullptr ? nullptr : &left, nullptr, 0));
}

namespace tokamak::client {
namespace {

constexpr std::chrono::nanoseconds kSoon = std::chrono::seconds(10);

class ClientCallsTest : public testing::Test {
 protected:
  void SetUp() override { calls = Calls(); }
  static void Expect(int sends, int receives) {
    EXPECT_EQ(calls.sends, sends);
    EXPECT_EQ(calls.receives, receives);
    EXPECT_EQ(calls.polls, 0);
    calls = Calls();
  }

  FakeDaemon daemon_;
  Client client_ = *Client::Connect(daemon_.path());
};

TEST_F(ClientCallsTest, ACallIsOneSystemCallEachWay) {
  ASSERT_TRUE(client_.Contains(SampleId(1)).ok());
  Expect(1, 1);
  ASSERT_TRUE(client_.Put(SampleId(1), SampleBytes()).ok());
  Expect(1, 1);
  const Buffer buffer = *client_.Get(SampleId(1), kSoon);
  Expect(1, 1);
}

TEST_F(ClientCallsTest, ACallOfAClientThatReconnectsIsOneSystemCallEachWayToo) {
  ClientOptions reconnecting;
  reconnecting.reconnect = true;
  Client client = *Client::Connect(daemon_.path(), reconnecting);
  calls = Calls();
  ASSERT_TRUE(client.Contains(SampleId(1)).ok());
  Expect(1, 1);
}

TEST_F(ClientCallsTest, ASpinningClientDoesNotSleepForAnEarlyAnswer) {
  ClientOptions spinning;
  spinning.spin = kSoon;
  Client client = *Client::Connect(daemon_.path(), spinning);
  calls = Calls();
  ASSERT_TRUE(client.Contains(SampleId(1)).ok());
  EXPECT_EQ(calls.sends, 1);
  EXPECT_EQ(calls.waits, 0);
  EXPECT_EQ(calls.polls, 0);
}

TEST_F(ClientCallsTest, ASpinningClientSleepsInTheEnd) {
  ClientOptions spinning;
  spinning.spin = std::chrono::milliseconds(1);
  Client client = *Client::Connect(daemon_.path(), spinning);
  calls = Calls();
  EXPECT_FALSE(client.Get(SampleId(7), std::chrono::milliseconds(300)).ok());
  EXPECT_EQ(calls.waits, 1);
}

TEST_F(ClientCallsTest, AnUnclaimedObjectIsOneSystemCallEachWay) {
  PutOptions unclaimed;
  unclaimed.claim = false;
  MutableBuffer buffer = *client_.Create(SampleId(1), 1024, {}, unclaimed);
  Expect(0, 0);
  ASSERT_EQ(buffer.Seal(), Status());
  Expect(1, 1);
}

TEST_F(ClientCallsTest, ManyGetsLeaveInOneWriteAndAreGivenBackInOne) {
  constexpr int kGets = 1000;
  std::vector<PutObject> objects;
  for (int i = 0; i < kGets; ++i) objects.push_back({SampleId(i), SampleBytes(), {}});
  ASSERT_EQ(client_.Put(objects).front(), Status());
  Gets gets(client_);
  for (int i = 0; i < kGets; ++i) ASSERT_TRUE(gets.Begin(SampleId(i), kSoon).ok());
  calls = Calls();
  ASSERT_TRUE(gets.Send().ok());
  Expect(1, 0);
  std::vector<Buffer> buffers;
  while (gets.pending() > 0) buffers.push_back(*std::move(gets.Next(kSoon)->buffer));
  // The daemon answers as many together as it handles in one turn.
  EXPECT_LE(calls.receives, kGets / os::kFramesPerTurn + 1 + kGets / 100);
  EXPECT_EQ(calls.sends, 0);
  calls = Calls();
  Buffer::ReleaseAll(buffers);
  Expect(1, 0);
}

TEST_F(ClientCallsTest, CancellingManyIsOneWrite) {
  {
    Gets gets(client_);
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(gets.Begin(SampleId(i), kSoon).ok());
    ASSERT_TRUE(gets.Send().ok());
    calls = Calls();
  }
  Expect(1, 0);
}

}  // namespace
}  // namespace tokamak::client
