// Locates that wait, asked of the server together.
#include <memory>
#include <string>
#include <vector>

#include "lib/base/random.h"
#include "lib/directory/remote/waits.h"
#include "tests/directory/remote_fixture.h"

namespace tokamak::directory {
namespace {

using base::Milliseconds;
using base::Seconds;

class RemoteWaitsTest : public RemoteDirectoryTest {
 protected:
  RemoteWaitsTest() { EXPECT_TRUE(Join("a").ok()); }

  // What became of one Locate.
  struct Wait {
    base::Time asked;
    base::Time ended;
    bool done = false;
    absl::StatusOr<ObjectInfo> result = absl::InternalError("no answer");
  };
  std::shared_ptr<Wait> Start(int number, base::Duration wait) {
    auto one = std::make_shared<Wait>();
    one->asked = loop_.Now();
    remote_.Locate(Id(std::to_string(number)), wait, wait + kDeadline, [this, one](absl::StatusOr<ObjectInfo> info) {
      EXPECT_FALSE(one->done);
      one->done = true;
      one->ended = loop_.Now();
      one->result = std::move(info);
    });
    EXPECT_FALSE(one->done);
    return one;
  }
  void Appear(int number) {
    local_.Announce(Id(std::to_string(number)), 1, 2, "a", kDeadline,
                    [](const absl::Status& s) { EXPECT_TRUE(s.ok()); });
  }
};

TEST_F(RemoteWaitsTest, ManyWaitsAreFewCalls) {
  const uint64_t before = caller_.calls();
  std::vector<std::shared_ptr<Wait>> waits;
  for (int i = 0; i < 2000; ++i) waits.push_back(Start(i, Seconds(60)));
  scheduler_.RunFor(Seconds(59));
  EXPECT_LE(caller_.pending(), RemoteWaits::kLongCalls + 1);
  EXPECT_LE(caller_.calls() - before, 40u);
  EXPECT_TRUE(Join("a").ok());  // whatever waits, a lease is renewed
  scheduler_.RunFor(Seconds(2));
  for (const auto& wait : waits) EXPECT_TRUE(absl::IsNotFound(wait->result.status()));
  EXPECT_LE(caller_.calls() - before, 50u);
  scheduler_.RunFor(Seconds(60));
  EXPECT_EQ(caller_.pending(), 0u);
  EXPECT_EQ(local_.objects(), 0u);
}

TEST_F(RemoteWaitsTest, WhatAppearsIsToldAtOnceToWhoWaits) {
  std::vector<std::shared_ptr<Wait>> waits;
  for (int i = 0; i < 2000; ++i) waits.push_back(Start(i, Seconds(60)));
  scheduler_.RunFor(Seconds(5));
  for (const int number : {1999, 0, 777}) {
    Appear(number);
    const base::Time appeared = scheduler_.Now();
    scheduler_.RunFor(Milliseconds(10));
    ASSERT_TRUE(waits[static_cast<size_t>(number)]->done);
    EXPECT_TRUE(waits[static_cast<size_t>(number)]->result.ok());
    EXPECT_LT(waits[static_cast<size_t>(number)]->ended - appeared, base::Microseconds(20));
  }
}

TEST_F(RemoteWaitsTest, WaitsThatComeOneByOneAreCoveredSoonAndComeTogether) {
  std::vector<std::shared_ptr<Wait>> waits;
  const uint64_t before = caller_.calls();
  for (int i = 0; i < 1000; ++i) {
    waits.push_back(Start(i, Seconds(60)));
    scheduler_.RunFor(Milliseconds(1));
  }
  const base::Time appeared = scheduler_.Now();
  for (int i = 0; i < 1000; ++i) Appear(i);
  scheduler_.RunFor(Seconds(1));
  for (const auto& wait : waits) {
    ASSERT_TRUE(wait->result.ok());
    EXPECT_LT(wait->ended - appeared, Milliseconds(60));
  }
  EXPECT_LE(caller_.calls() - before, 100u);
}

TEST_F(RemoteWaitsTest, WhatIsThereIsFoundSoonWhateverElseWaits) {
  Appear(5000);
  for (int i = 0; i < 5000; ++i) Start(i, Seconds(60));
  scheduler_.RunFor(Seconds(1));
  const auto wait = Start(5000, Seconds(60));
  scheduler_.RunFor(Seconds(2));
  ASSERT_TRUE(wait->result.ok());
  EXPECT_LT(wait->ended - wait->asked, Milliseconds(200));
}

TEST_F(RemoteWaitsTest, EachWaitEndsAtItsOwnTime) {
  base::Random random(1);
  std::vector<std::pair<std::shared_ptr<Wait>, base::Duration>> waits;
  for (int i = 0; i < 3000; ++i) {
    const base::Duration length = Milliseconds(1 + static_cast<int64_t>(random.Below(130'000)));
    waits.emplace_back(Start(static_cast<int>(random.Below(1000)), length), length);
  }
  scheduler_.RunFor(Seconds(200));
  for (const auto& [wait, length] : waits) {
    ASSERT_TRUE(absl::IsNotFound(wait->result.status()));
    EXPECT_GE(wait->ended - wait->asked, length);
    EXPECT_LE(wait->ended - wait->asked, length + base::Microseconds(20));
  }
}

TEST_F(RemoteWaitsTest, SeveralWhoWaitForOneObjectAreAllTold) {
  const auto early = Start(1, Milliseconds(100));
  const auto late = Start(1, Seconds(30));
  const auto later = Start(1, Seconds(40));
  scheduler_.RunFor(Seconds(1));
  EXPECT_TRUE(absl::IsNotFound(early->result.status()));
  Appear(1);
  scheduler_.RunFor(Seconds(1));
  EXPECT_TRUE(late->result.ok());
  EXPECT_TRUE(later->result.ok());
}

TEST_F(RemoteWaitsTest, MoreThanOneReplyHoldsIsFoundAllTheSame) {
  DirectoryServer small_replies(local_, DirectoryServer::kMinReply);
  FakeCaller caller(loop_, [&](absl::Span<const uint8_t> request, DirectoryServer::Reply reply) {
    small_replies.Handle(request, [reply](absl::Span<const uint8_t> bytes) {
      EXPECT_LE(bytes.size(), DirectoryServer::kMinReply);
      reply(bytes);
    });
  });
  RemoteDirectory remote(loop_, caller, verbs::Address());
  int found = 0;
  for (int i = 0; i < 600; ++i) {
    remote.Locate(Id(std::to_string(i)), i % 2 == 0 ? Seconds(30) : Seconds(1), Seconds(40),
                  [&](const absl::StatusOr<ObjectInfo>& info) { found += info.ok(); });
  }
  scheduler_.RunFor(Seconds(1) - Milliseconds(1));
  for (int i = 0; i < 600; ++i) Appear(i);  // just before many have their last question
  scheduler_.RunFor(Seconds(2));
  EXPECT_EQ(found, 600);
}

TEST_F(RemoteWaitsTest, AnOutageIsWaitedOutAndAWaitThatEndsInItSaysSo) {
  const auto ends = Start(1, Seconds(30));
  const auto goes_on = Start(2, Seconds(60));
  scheduler_.RunFor(Seconds(1));
  caller_.cut = true;
  scheduler_.RunFor(Seconds(35));
  ASSERT_TRUE(ends->done);
  EXPECT_TRUE(absl::IsDeadlineExceeded(ends->result.status())) << ends->result.status();
  EXPECT_FALSE(goes_on->done);
  caller_.cut = false;
  Appear(2);
  scheduler_.RunFor(Seconds(23));
  EXPECT_TRUE(goes_on->result.ok());
}

TEST_F(RemoteWaitsTest, GarbledRepliesHarmNothingAndEveryWaitEnds) {
  base::Random random(3);
  caller_.garble = [&](FakeCaller::Bytes& reply) {
    if (!reply.empty() && random.Chance(0.5)) reply[random.Below(reply.size())] ^= 1 << random.Below(8);
    if (random.Chance(0.1)) reply.resize(random.Below(reply.size() + 1));
  };
  std::vector<std::shared_ptr<Wait>> waits;
  for (int i = 0; i < 500; ++i) {
    waits.push_back(Start(i, Milliseconds(static_cast<int64_t>(random.Below(3000)) + 1)));
    if (random.Chance(0.5)) Appear(static_cast<int>(random.Below(500)));
    scheduler_.RunFor(Milliseconds(5));
  }
  scheduler_.RunFor(Seconds(30));
  for (const auto& wait : waits) EXPECT_TRUE(wait->done);
}

TEST_F(RemoteWaitsTest, WaitsBeyondTheBoundAreRefused) {
  for (size_t i = 0; i < RemoteWaits::kMaxWaiting; ++i) Start(0, Seconds(10));
  const auto refused = Start(0, Seconds(10));
  scheduler_.RunFor(Seconds(1));
  EXPECT_TRUE(absl::IsResourceExhausted(refused->result.status()));
}

TEST_F(RemoteWaitsTest, AServerMayEndWhileItHoldsCalls) {
  auto directory = std::make_unique<LocalDirectory>(server_loop_);
  auto server = std::make_unique<DirectoryServer>(*directory, 4096);
  base::Writer request;
  request.Integer(static_cast<uint8_t>(RequestKind::kLocateAny));
  request.Integer(Seconds(10).picoseconds());
  request.Integer<uint32_t>(1);
  request.Id(Id("x"));
  server->Handle(request.bytes(), [](absl::Span<const uint8_t>) { FAIL(); });
  scheduler_.RunFor(Seconds(1));
  server.reset();
  EXPECT_EQ(directory->objects(), 0u);
  server = std::make_unique<DirectoryServer>(*directory, 4096);
  server->Handle(request.bytes(), [](absl::Span<const uint8_t>) { FAIL(); });
  directory.reset();
  server.reset();
  scheduler_.RunFor(Seconds(20));
}

}  // namespace
}  // namespace tokamak::directory
