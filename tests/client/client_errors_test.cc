// The client against a daemon that is missing, silent, late, dying or lying.
#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_daemon.h"
#include "tests/client/samples.h"
#include "tokamak/client.h"
#include "tokamak/gets.h"

namespace tokamak::client {
namespace {

using testing::HasSubstr;
using Bytes = FakeDaemon::Bytes;

class ClientErrorsTest : public testing::Test {
 protected:
  static ClientOptions Impatient() {
    ClientOptions options;
    options.call_timeout = std::chrono::milliseconds(50);
    return options;
  }

  Client Connect(const ClientOptions& options = {}) { return *Client::Connect(daemon_.path(), options); }

  // Keeps the ids of requests instead of answering.
  FakeDaemon::Script Silence() {
    return [this](const Header& header, const Bytes&) {
      unanswered_ = header.request_id;
      return std::nullopt;
    };
  }

  template <typename M>
  static FakeDaemon::Script Always(const M& message) {
    return [message](const Header& header, const Bytes&) { return Encode(header.request_id, message); };
  }

  FakeDaemon daemon_;
  uint64_t unanswered_ = 0;  // of the daemon's thread until the call has ended
};

TEST(ClientWithoutDaemonTest, AMissingDaemonIsReportedWithTheWayToStartOne) {
  const Status status = Client::Connect("/tmp/no-such-tokamak-socket").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("start one with tokd --socket /tmp/no-such-tokamak-socket"));
}

TEST_F(ClientErrorsTest, AnotherVersionIsAClearError) {
  daemon_.Answer(Kind::kHello, [](const Header& header, const Bytes&) {
    Bytes frame = Encode(header.request_id, WelcomeReply());
    frame[4] = kVersion + 1;
    return frame;
  });
  const Status status = Client::Connect(daemon_.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("version ", kVersion + 1)));
}

TEST_F(ClientErrorsTest, ADaemonThatRefusesGivesItsReason) {
  daemon_.Answer(Kind::kHello, [](const Header& header, const Bytes&) {
    return EncodeError(header, absl::ResourceExhaustedError("too many clients"));
  });
  EXPECT_EQ(Client::Connect(daemon_.path()).status(), Status(StatusCode::kResourceExhausted, "too many clients"));
}

TEST_F(ClientErrorsTest, SomethingElseThatListensIsNotADaemon) {
  daemon_.Answer(Kind::kHello,
                 [](const Header&, const Bytes&) { return Bytes{'2', '2', '0', ' ', 'm', 'a', 'i', 'l'}; });
  EXPECT_THAT(Client::Connect(daemon_.path()).status().message(), HasSubstr("is not a tokd"));
}

TEST_F(ClientErrorsTest, AnArenaOfAnotherSizeIsRefused) {
  WelcomeReply welcome;
  welcome.arena_size = 2 * FakeDaemon::kCapacity;
  daemon_.Answer(Kind::kHello, Always(welcome));
  ClientOptions options;
  options.access = Access::kRead;
  EXPECT_EQ(Client::Connect(daemon_.path(), options).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(ClientErrorsTest, AMissingDescriptorIsRefused) {
  daemon_.Answer(Kind::kHello, Always(WelcomeReply()));
  EXPECT_THAT(Client::Connect(daemon_.path()).status().message(), HasSubstr("sent 1 descriptors"));
}

TEST_F(ClientErrorsTest, AListWithoutProgressEnds) {
  ListReply again;
  again.objects.resize(2);
  again.objects[0].id = SampleId(1);
  again.objects[1].id = SampleId(2);
  std::sort(again.objects.begin(), again.objects.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  again.more = true;
  daemon_.Answer(Kind::kList, Always(again));
  Client client = Connect();
  const Status status = client.List(1'000'000'000).status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("not in the order of ids"));
}

TEST_F(ClientErrorsTest, ASilentDaemonEndsTheCallInTime) {
  Client client = Connect(Impatient());
  daemon_.Answer(Kind::kContains, Silence());
  EXPECT_EQ(client.Contains(SampleId(1)).status().code(), StatusCode::kDeadlineExceeded);
  daemon_.AnswerAsUsual(Kind::kContains);
  EXPECT_TRUE(client.Contains(SampleId(1)).ok()) << "the connection goes on";
}

TEST_F(ClientErrorsTest, ALateAnswerGoesToNobodyElse) {
  Client client = Connect(Impatient());
  daemon_.Answer(Kind::kContains, Silence());
  EXPECT_FALSE(client.Contains(SampleId(1)).ok());
  daemon_.AnswerAsUsual(Kind::kContains);
  ContainsReply yes;
  yes.here = true;
  daemon_.SendToAll(Encode(unanswered_, yes));
  EXPECT_EQ(*client.Contains(SampleId(2)), false);
  EXPECT_TRUE(client.status().ok());
}

TEST_F(ClientErrorsTest, PinsOfALateGetAreReleased) {
  Client client = Connect(Impatient());
  ASSERT_TRUE(client.Put(SampleId(1), SampleBytes()).ok());
  daemon_.Answer(Kind::kGet, Silence());
  EXPECT_EQ(client.Get(SampleId(1), Timeout()).status().code(), StatusCode::kDeadlineExceeded);

  std::vector<base::ObjectId> released;
  daemon_.NoteReleases(released);
  GetReply late;
  late.entries.resize(1);
  daemon_.SendToAll(Encode(unanswered_, late));
  EXPECT_TRUE(client.Contains(SampleId(1)).ok());
  EXPECT_TRUE(client.Contains(SampleId(1)).ok()) << "behind the release";
  EXPECT_EQ(released, std::vector<base::ObjectId>{SampleId(1)});
}

TEST_F(ClientErrorsTest, TheReservationOfALateCreateIsAborted) {
  Client client = Connect(Impatient());
  daemon_.Answer(Kind::kCreate, Silence());
  EXPECT_EQ(client.Create(SampleId(1), 10).status().code(), StatusCode::kDeadlineExceeded);

  base::ObjectId aborted;
  daemon_.Answer(Kind::kAbort, [&](const Header&, const Bytes& frame) {
    aborted = DecodeBody<AbortRequest>(frame)->id;
    return std::nullopt;
  });
  daemon_.SendToAll(Encode(unanswered_, CreateReply()));
  EXPECT_TRUE(client.Contains(SampleId(1)).ok());
  EXPECT_TRUE(client.Contains(SampleId(1)).ok()) << "behind the abort";
  EXPECT_EQ(aborted, SampleId(1));
}

TEST_F(ClientErrorsTest, ADyingDaemonEndsEveryCallAtOnce) {
  Client client = Connect();
  std::thread killer([&] {
    EXPECT_TRUE(daemon_.AwaitGets(2));
    daemon_.Disconnect();
  });
  const auto begin = std::chrono::steady_clock::now();
  std::thread other(
      [&] { EXPECT_EQ(client.Get(SampleId(1), std::chrono::seconds(60)).status().code(), StatusCode::kUnavailable); });
  EXPECT_EQ(client.Get(SampleId(2), std::chrono::seconds(60)).status().code(), StatusCode::kUnavailable);
  other.join();
  killer.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_THAT(client.status().message(), HasSubstr("connect again"));
  EXPECT_EQ(client.Contains(SampleId(1)).status(), client.status());
  EXPECT_TRUE(Client::Connect(daemon_.path()).ok());
}

// The daemon stops reading, and patient puts fill the socket, so that nothing else is sent until
// `read` is called.
class ClogTest : public ClientErrorsTest {
 protected:
  void Clog(Client& client) {
    daemon_.Answer(Kind::kTouch, [this](const Header&, const Bytes&) {
      clogged_.get_future().wait();
      return std::nullopt;
    });
    EXPECT_EQ(client.Touch(SampleId(0)).code(), StatusCode::kDeadlineExceeded);
    PutOptions patient;
    patient.timeout = std::chrono::seconds(60);
    for (int i = 0; i < 16; ++i) {
      putters_.emplace_back([&client, patient, i] {
        EXPECT_TRUE(client.Put(SampleId(100 + i), Bytes(kMaxInlineBytes), {}, patient).ok());
      });
    }
    Status status;
    do {
      status = client.Contains(SampleId(0)).status();
      ASSERT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    } while (status.message().find("takes no requests") == std::string::npos);
  }

  void Unclog() {
    clogged_.set_value();
    for (std::thread& putter : putters_) putter.join();
  }

  std::promise<void> clogged_;
  std::vector<std::thread> putters_;
};

TEST_F(ClogTest, AnObjectWhoseSealIsNotSentIsAborted) {
  Client client = Connect(Impatient());
  MutableBuffer buffer = *client.Create(SampleId(1), 10);
  Clog(client);
  EXPECT_THAT(buffer.Seal().message(), HasSubstr("takes no requests"));
  EXPECT_TRUE(buffer.empty());
  Unclog();
  EXPECT_EQ(client.Get(SampleId(1), Timeout()).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(client.Put(SampleId(1), SampleBytes()).ok()) << "the id is free again";
}

TEST_F(ClogTest, GetsArePolledAndCancelledWithoutWaiting) {
  Client client = Connect(Impatient());
  ASSERT_TRUE(client.Put(SampleId(1), SampleBytes()).ok());
  Gets gets(client);
  const std::chrono::seconds now(0), long_enough(60);
  ASSERT_TRUE(gets.Begin(SampleId(1), long_enough).ok());
  ASSERT_TRUE(gets.Begin(SampleId(1), long_enough).ok());
  const uint64_t waiting = *gets.Begin(SampleId(2), long_enough);
  ASSERT_TRUE(gets.Send().ok());
  while (daemon_.statistics().pins != 2) std::this_thread::yield();
  ASSERT_TRUE(client.Contains(SampleId(1)).ok());
  ASSERT_TRUE(gets.Next(now).ok());
  ASSERT_EQ(gets.ended(), 1u) << "they came together";
  Clog(client);
  ASSERT_TRUE(gets.Begin(SampleId(3), long_enough).ok());  // cannot be sent
  const Result<Gets::Answer> ended = gets.Next(now);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->id, SampleId(1));
  EXPECT_THAT(gets.Next(now).status().message(), HasSubstr("no get has ended")) << "it has looked";
  EXPECT_THAT(gets.Next(long_enough).status().message(), HasSubstr("takes no requests")) << "for as long as a call";
  gets.Cancel(waiting);
  EXPECT_EQ(gets.pending(), 1u);
  Unclog();
  EXPECT_TRUE(client.Put(SampleId(3), SampleBytes()).ok());
  const Result<Gets::Answer> last = gets.Next(long_enough);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->id, SampleId(3));
  EXPECT_TRUE(last->buffer.ok());
  EXPECT_EQ(gets.pending(), 0u);
  EXPECT_EQ(daemon_.statistics().waiting, 0u) << "what was cancelled";
}

TEST_F(ClogTest, BuffersDroppedMeanwhileAreAbortedAndReleasedWithoutWaiting) {
  Client client = Connect(Impatient());
  ASSERT_TRUE(client.Put(SampleId(1), SampleBytes()).ok());
  Buffer sealed = *client.Get(SampleId(1), std::chrono::seconds(10));
  MutableBuffer unsealed = *client.Create(SampleId(2), 10);
  MutableBuffer aborted = *client.Create(SampleId(3), 10);
  Clog(client);
  sealed.Release();
  { const MutableBuffer dropped = std::move(unsealed); }
  EXPECT_THAT(aborted.Abort().message(), HasSubstr("takes no requests"));
  Unclog();
  EXPECT_TRUE(client.status().ok()) << "nothing of this ends the connection";
  EXPECT_TRUE(client.Put(SampleId(2), SampleBytes()).ok());
  EXPECT_TRUE(client.Put(SampleId(3), SampleBytes()).ok());
  EXPECT_EQ(client.Stat(SampleId(1))->object.pins, 0);
}

TEST_F(ClientErrorsTest, AnIdleClientNoticesThatItsDaemonHasGone) {
  const Client client = Connect();
  EXPECT_TRUE(client.status().ok());
  daemon_.Disconnect();
  EXPECT_EQ(client.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(client.status().message(), HasSubstr("connect again"));
}

// The daemon's last message is still there to be read.
TEST_F(ClientErrorsTest, AnIdleClientNoticesThatItsDaemonHasGoneBehindItsLastWords) {
  const Client client = Connect();
  daemon_.SendToAll(Encode(999, ContainsReply()));
  daemon_.Disconnect();
  EXPECT_EQ(client.status().code(), StatusCode::kUnavailable);
}

TEST_F(ClientErrorsTest, ABufferStaysReadableWhenTheDaemonHasGone) {
  Client client = Connect();
  ASSERT_TRUE(client.Put(SampleId(1), SampleBytes()).ok());
  const Buffer buffer = *client.Get(SampleId(1), std::chrono::seconds(10));
  daemon_.Disconnect();
  EXPECT_EQ(buffer.data(), Span<const uint8_t>(SampleBytes()));
}

TEST_F(ClientErrorsTest, MemoryOutsideOfTheArenaIsNotTouched) {
  Client client = Connect();
  for (const Location& location : {Location{FakeDaemon::kCapacity, 1, 0}, Location{UINT64_MAX, 1, 0},
                                   Location{0, UINT64_MAX, 0}, Location{8, FakeDaemon::kCapacity - 8, 1}}) {
    GetReply reply;
    reply.entries = {{{}, location}};
    daemon_.Answer(Kind::kGet, Always(reply));
    EXPECT_EQ(client.Get(SampleId(1), std::chrono::seconds(1)).status().code(), StatusCode::kInternal);
  }
}

TEST_F(ClientErrorsTest, AnswersForAWrongNumberOfObjectsAreAnError) {
  Client client = Connect();
  daemon_.Answer(Kind::kGet, Always(GetReply()));
  daemon_.Answer(Kind::kCreateAndSeal, Always(CreateAndSealReply()));
  daemon_.Answer(Kind::kWait, Always(WaitReply()));
  EXPECT_EQ(client.Get(SampleId(1), std::chrono::seconds(1)).status().code(), StatusCode::kInternal);
  EXPECT_EQ(client.Put(SampleId(1), {}).code(), StatusCode::kInternal);
  EXPECT_EQ(client.Wait({SampleId(1)}, 1, std::chrono::seconds(1)).status().code(), StatusCode::kInternal);
}

TEST_F(ClientErrorsTest, AnUnclaimedObjectEndsWithItsDaemon) {
  Client client = Connect();
  PutOptions unclaimed;
  unclaimed.claim = false;
  MutableBuffer buffer = *client.Create(SampleId(1), 10, {}, unclaimed);
  daemon_.Answer(Kind::kCreateAndSeal, Always(CreateAndSealReply()));
  EXPECT_EQ(client.Create(SampleId(1), 10, {}, unclaimed)->Seal().code(), StatusCode::kInternal);
  daemon_.Disconnect();
  EXPECT_EQ(buffer.Seal().code(), StatusCode::kUnavailable);
}

TEST_F(ClientErrorsTest, AWrongSizeIsAnError) {
  Client client = Connect();
  CreateReply reply;
  reply.location = {0, 5, 0};
  daemon_.Answer(Kind::kCreate, Always(reply));
  daemon_.Answer(Kind::kAbort, [](const Header&, const Bytes&) { return std::nullopt; });
  EXPECT_EQ(client.Create(SampleId(1), 10).status().code(), StatusCode::kInternal);
}

TEST_F(ClientErrorsTest, ADaemonThatViolatesTheProtocolIsDisconnected) {
  for (const Bytes& malformed : {Bytes{1, 2, 3}, Encode(999, ContainsReply()), Encode(2, StatReply()),
                                 Frame(
                                     [] {
                                       Header header;
                                       header.kind = ContainsReply::kKind;
                                       header.request_id = 2;
                                       return header;
                                     }(),
                                     Bytes{7})}) {
    Client client = Connect();
    daemon_.Answer(Kind::kContains, [&](const Header&, const Bytes&) { return malformed; });
    EXPECT_FALSE(client.Contains(SampleId(1)).ok());
    EXPECT_EQ(client.status().code(), StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace tokamak::client
