// A connection manager that strangers flood with requests under forged addresses, and honest peers
// that come meanwhile, or all at once.
#include <algorithm>
#include <set>

#include "tests/verbs/soft/cm/connection_manager_fixture.h"

namespace tokamak::verbs::soft {
namespace {

// Nobody is at this address, or somebody who never asked.
Address Forged(uint32_t number) {
  Address address = FakeAddress(0, 40000);
  address.ip[13] = 1;
  address.ip[14] = static_cast<uint8_t>(number >> 8);
  address.ip[15] = static_cast<uint8_t>(number);
  return address;
}

class ConnectionFloodTest : public ConnectionManagerTest {
 protected:
  Mad Req(const Address& from, uint32_t id, uint32_t queue_pair, uint64_t transaction) {
    ConnectionOffer offer;
    offer.queue_pair = queue_pair;
    return {transaction, MakeReq(offer, from, At(*b_), 99, id)};
  }
  // Sends a request in the name of `from`, different from all before.
  DatagramResult Forge(const Address& from) {
    ++forged_;
    Address device = from;
    device.port = 0;
    return b_->ReceiveMad(device, Req(from, 0x10000 + forged_, 0x10000 + forged_, 0x10000 + forged_));
  }

  // Accepts whoever asks b_.
  std::unique_ptr<Listener> Serve() {
    return *b_->manager->Listen(b_->owner, At(*b_), [this](std::unique_ptr<ConnectionRequest> request) {
      served_.push_back(std::make_unique<End>(*b_));
      EXPECT_TRUE(served_.back()->Accept(*request).ok());
    });
  }

  // Honest peers connect, one after the other, while requests of `addresses` forged addresses come
  // in, 100,000 each second.
  void ConnectWhileFlooded(uint32_t addresses) {
    auto listener = Serve();
    constexpr int kHonest = 20;
    for (int honest = 0; honest < kHonest; ++honest) {
      for (int i = 0; i < 1000; ++i) {
        const bool in_its_name = i % 50 == 0;
        in_honest_names_ += in_its_name;
        Forge(in_its_name ? At(*a_, 40000) : Forged(forged_ % addresses));
        Run(Microseconds(10));
      }
      End active(*a_);
      ASSERT_TRUE(active.Connect(At(*b_)).ok());
      for (int i = 0; i < 100; ++i) {
        Forge(Forged(forged_ % addresses));
        Run(Microseconds(10));
      }
      EXPECT_THAT(active.events, ElementsAre(Kind::kEstablished)) << honest;
      EXPECT_LE(b_->manager->half_open(), kMaxHalfOpen);
    }
    // The honest host answers that it never asked, which returns the places taken in its name.
    EXPECT_LE(served_.size(), kAnyHalfOpen.of_all + in_honest_names_ + kHonest)
        << "the others cost nothing but an answer";
    Run(Seconds(60));
    EXPECT_EQ(b_->manager->half_open(), 0u);
    RecordProperty("datagrams_in", static_cast<int>(forged_));
    RecordProperty("datagrams_out", static_cast<int>(wire_.sent.size()));
    // Admitted requests are answered three times at most, the others once.
    EXPECT_LE(wire_.sent.size(),
              forged_ + (kMaxUnconfirmed - 1) * kAnyHalfOpen.of_all + in_honest_names_ + 20 * kHonest);
  }

  size_t QuestionsSent() const {
    return static_cast<size_t>(std::count_if(wire_.sent.begin(), wire_.sent.end(), [](const Mad& mad) {
      const auto* const dreq = std::get_if<DreqMad>(&mad.body);
      return dreq != nullptr && IsQuestion(*dreq);
    }));
  }

  uint32_t forged_ = 0;
  size_t in_honest_names_ = 0;
  std::deque<std::unique_ptr<End>> served_;
};

TEST_F(ConnectionFloodTest, AForgedRequestIsAnsweredThreeTimesAtMostWhateverTheApplicationDoes) {
  enum class Does { kAccepts, kAcceptsAndLeaves, kAcceptsAndFails, kRejects, kNothing };
  for (const Does does :
       {Does::kAccepts, Does::kAcceptsAndLeaves, Does::kAcceptsAndFails, Does::kRejects, Does::kNothing}) {
    std::deque<std::unique_ptr<End>> ends;
    auto listener = *b_->manager->Listen(b_->owner, At(*b_), [&](std::unique_ptr<ConnectionRequest> request) {
      if (does == Does::kRejects) return;
      if (does == Does::kNothing) return requests_.push_back(std::move(request));
      ends.push_back(std::make_unique<End>(*b_));
      EXPECT_TRUE(ends.back()->Accept(*request).ok());
      if (does == Does::kAcceptsAndLeaves) ends.back()->connection.reset();
      if (does == Does::kAcceptsAndFails) b_->Fail(ends.back()->queue_pair->number());
    });
    wire_.sent.clear();
    constexpr size_t kRequests = 64;
    for (size_t i = 0; i < kRequests; ++i) EXPECT_EQ(Forge(Forged(7)), DatagramResult::kTaken);
    Run(Seconds(120));
    requests_.clear();
    const size_t most = does == Does::kRejects || does == Does::kNothing ? 1 : kMaxUnconfirmed;
    EXPECT_LE(wire_.sent.size(), most * kRequests) << static_cast<int>(does);
    EXPECT_GE(wire_.sent.size(), kRequests) << static_cast<int>(does);
    EXPECT_EQ(b_->manager->connections(), 0u);
  }
}

TEST_F(ConnectionFloodTest, SixteenForgedAddressesDoNotKeepHonestPeersOut) { ConnectWhileFlooded(16); }

TEST_F(ConnectionFloodTest, AThousandForgedAddressesDoNotKeepHonestPeersOut) { ConnectWhileFlooded(1000); }

TEST_F(ConnectionFloodTest, ACookieIsGoodForItsOwnerAlone) {
  auto listener = Serve();
  for (size_t i = 0; i < kAnyHalfOpen.of_one; ++i) Forge(Forged(1));
  EXPECT_EQ(Forge(Forged(1)), DatagramResult::kRefused);
  ASSERT_TRUE(IsQuestion(std::get<DreqMad>(wire_.sent.back().body)));
  const uint64_t cookie = wire_.sent.back().transaction;
  for (size_t i = 0; i < kAnyHalfOpen.of_one; ++i) Forge(Forged(2));
  Address thief = Forged(2), owner = Forged(1);
  thief.port = owner.port = 0;
  EXPECT_EQ(b_->ReceiveMad(thief, Req(Forged(2), 5, 5, cookie)), DatagramResult::kRefused);
  EXPECT_EQ(b_->ReceiveMad(owner, Req(Forged(1), 5, 5, cookie ^ 1)), DatagramResult::kRefused);
  EXPECT_EQ(b_->ReceiveMad(owner, Req(Forged(1), 5, 5, cookie)), DatagramResult::kTaken);
  Run(Seconds(4));  // before the places are free again
  EXPECT_EQ(b_->ReceiveMad(owner, Req(Forged(1), 6, 6, cookie)), DatagramResult::kTaken);
  Run(Seconds(20));
  for (size_t i = 0; i < kAnyHalfOpen.of_one; ++i) Forge(Forged(1));
  EXPECT_EQ(b_->ReceiveMad(owner, Req(Forged(1), 7, 7, cookie)), DatagramResult::kRefused) << "it is too old";
}

// A manager that knows nothing of cookies, such as the kernel's: it says that it knows no such
// connection, and repeats its request, the very same, in its time (4.3 s).
TEST_F(ConnectionFloodTest, APeerWithoutCookiesIsAcceptedOnceItAnswersAQuestion) {
  auto listener = Serve();
  const auto flood = [&] {
    for (int i = 0; i < 3000; ++i) {
      Forge(i % 50 == 0 ? FakeAddress(9, 40000) : Forged(forged_ % 1000));
      Run(Microseconds(10));
    }
  };
  flood();
  const Mad req = StrangersReq(1, 1000, *b_);
  EXPECT_EQ(b_->ReceiveMad(FakeAddress(9), req), DatagramResult::kRefused);
  const Mad question = wire_.sent.back();
  EXPECT_EQ(std::get<DreqMad>(question.body).remote_id, 1u);
  flood();
  EXPECT_EQ(b_->ReceiveMad(FakeAddress(9), req), DatagramResult::kRefused);
  b_->ReceiveMad(FakeAddress(9), {question.transaction ^ 1, AnswerForUnknown(question)->body});
  EXPECT_EQ(b_->ReceiveMad(FakeAddress(9), req), DatagramResult::kRefused) << "that was a guess";

  b_->ReceiveMad(FakeAddress(9), *AnswerForUnknown(question));
  flood();
  const size_t served = served_.size();
  EXPECT_EQ(b_->ReceiveMad(FakeAddress(9), req), DatagramResult::kTaken);
  Run(Microseconds(10));
  ASSERT_EQ(served_.size(), served + 1);
  const auto rep = std::find_if(wire_.sent.rbegin(), wire_.sent.rend(), [](const Mad& mad) {
    const auto* const body = std::get_if<RepMad>(&mad.body);
    return body != nullptr && body->remote_id == 1;
  });
  ASSERT_NE(rep, wire_.sent.rend());
  b_->ReceiveMad(FakeAddress(9), {1, RtuMad{1, std::get<RepMad>(rep->body).local_id}});
  Run(Milliseconds(1));
  EXPECT_THAT(served_.back()->events, ElementsAre(Kind::kEstablished));
}

TEST_F(ConnectionFloodTest, APresentPeerIsForgottenAfterAWhile) {
  auto listener = Serve();
  for (size_t i = 0; i <= kAnyHalfOpen.of_one; ++i) Forge(Forged(1));
  Address owner = Forged(1);
  owner.port = 0;
  b_->ReceiveMad(owner, *AnswerForUnknown(wire_.sent.back()));
  EXPECT_EQ(Forge(Forged(1)), DatagramResult::kTaken);
  Run(Seconds(30));
  for (size_t i = 0; i < kAnyHalfOpen.of_one; ++i) EXPECT_EQ(Forge(Forged(1)), DatagramResult::kTaken);
  EXPECT_EQ(Forge(Forged(1)), DatagramResult::kRefused);
}

TEST_F(ConnectionFloodTest, AForgerWhoNamesEveryNumberEndsNoConnection) {
  End active(*a_), passive(*b_);
  Establish(active, passive);
  auto listener = Serve();
  size_t forged = 0;
  for (uint32_t number = 2; number < 5000; ++number) {
    b_->ReceiveMad(a_->address(), Req(At(*a_, 40000), 0x10000 + number, number, number));
    ++forged;
    Run(Microseconds(100));
  }
  // And one who knows it.
  ConnectionOffer offer;
  offer.queue_pair = passive.queue_pair->number();
  for (uint32_t i = 1; i <= 5000; ++i) {
    b_->ReceiveMad(a_->address(), Req(At(*a_, 40000), 0x20000 + i, active.queue_pair->number(), i));
    a_->ReceiveMad(b_->address(), {i, MakeReq(offer, At(*b_, 40000), At(*a_), 98, 0x20000 + i)});
    forged += 2;
    Run(Microseconds(100));
  }
  Run(Seconds(30));
  for (const End* end : {&active, &passive}) {
    EXPECT_THAT(end->events, ElementsAre(Kind::kEstablished));
    EXPECT_EQ(end->queue_pair->state(), QueuePairState::kReadyToSend);
  }
  EXPECT_LE(wire_.sent.size(), 2 * forged);
}

TEST_F(ConnectionFloodTest, APeerThatWasRestartedConnectsAgain) {
  End passive(*b_);
  auto listener = Listen(*b_);
  auto before = std::make_unique<End>(*a_);
  ASSERT_TRUE(before->Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  ASSERT_TRUE(passive.Accept(*requests_.front()).ok());
  requests_.clear();
  Run(Milliseconds(1));
  ASSERT_THAT(passive.events, ElementsAre(Kind::kEstablished));
  const uint32_t number = before->queue_pair->number();
  wire_.filter = [](const Mad&) { return std::vector<Duration>(); };  // it goes without a word
  before.reset();
  wire_.filter = nullptr;

  auto reborn = std::make_shared<FakeNic>(scheduler_, wire_, 1);
  for (int i = 0; i < 100; ++i) reborn->numbers().Next();  // as another seed would
  End again(*reborn), once_more(*reborn);
  ASSERT_EQ(again.queue_pair->number(), number);
  ASSERT_TRUE(again.Connect(At(*b_)).ok());
  Run(Milliseconds(1));
  EXPECT_THAT(again.events, ElementsAre(Kind::kRejected));
  EXPECT_TRUE(absl::IsAborted(again.status)) << again.status;
  EXPECT_THAT(passive.events, ElementsAre(Kind::kEstablished, Kind::kDisconnected)) << "it was asked, and said so";
  b_->ReceiveMad(reborn->address(), Req(At(*reborn, 40000), 77, number, 77));
  Run(Milliseconds(1));
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(ConnectionFloodTest, ThreeHundredPeersAtOnceAreAllAccepted) {
  auto listener = Serve();
  b_->owner.Spend(Milliseconds(20));  // too busy to hear of any for now
  std::vector<std::shared_ptr<FakeNic>> peers;
  std::vector<std::unique_ptr<End>> ends;
  for (uint16_t i = 0; i < 300; ++i) {
    peers.push_back(std::make_shared<FakeNic>(scheduler_, wire_, static_cast<uint16_t>(1000 + i)));
    for (int both = 0; both < 2; ++both) {
      ends.push_back(std::make_unique<End>(*peers.back()));
      ASSERT_TRUE(ends.back()->Connect(At(*b_)).ok());
    }
  }
  Run(Milliseconds(21));
  for (const auto& end : ends) EXPECT_THAT(end->events, ElementsAre(Kind::kEstablished));
  EXPECT_EQ(wire_.sent.size(), 3 * ends.size()) << "REQ, REP and RTU for each";
}

TEST_F(ConnectionFloodTest, ThreeHundredRequestsOfOneAddressAtOnceAreAllAccepted) {
  auto listener = Serve();
  b_->owner.Spend(Milliseconds(20));
  std::vector<std::unique_ptr<End>> ends;
  for (int i = 0; i < 300; ++i) {
    ends.push_back(std::make_unique<End>(*a_));
    ASSERT_TRUE(ends.back()->Connect(At(*b_)).ok());
  }
  Run(Milliseconds(21));
  for (const auto& end : ends) EXPECT_THAT(end->events, ElementsAre(Kind::kEstablished));
  EXPECT_EQ(QuestionsSent(), 300 - kAnyHalfOpen.of_one) << "each a cookie, which costs a round trip";
}

}  // namespace
}  // namespace tokamak::verbs::soft
