// Peers that prove that they belong to the cluster, those that cannot, and somebody between two.
#include "lib/security/handshake.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/transport/messages/hello.h"
#include "tests/transport/posting_device.h"
#include "tests/transport/rails_world.h"
#include "tests/transport/raw_peer.h"
#include "tests/transport/secured/man_between.h"
#include "tests/transport/security.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {
namespace {

using base::Milliseconds;
using base::Seconds;

constexpr char kMarker[] = "nobody on the path reads this";

NodeOptions With(const PeerSecurity& security) {
  NodeOptions options;
  options.security = security;
  return options;
}

NodeOptions With(const std::vector<uint8_t>& secrets) { return With(SecurityOf(secrets)); }

NodeOptions WithoutSecret() { return With(PeerSecurity()); }

class SecuredTest : public ::testing::Test {
 protected:
  absl::Status Pull(Node& puller, Node& owner, Protocol protocol = Protocol::kEager) {
    auto outcome = puller.Pull(owner, owner.AddObject(200'000), protocol);
    EXPECT_TRUE(world.Finish(outcome));
    EXPECT_TRUE(!outcome->status.ok() || outcome->right);
    return outcome->status;
  }

  void ExpectRefused(Node& puller, Node& owner, absl::string_view text) {
    const absl::Status status = Pull(puller, owner);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
    EXPECT_EQ(owner.source.pins_ever(), 0u);
    EXPECT_EQ(owner.endpoint->counters().connections_opened, 0u);
    world.ExpectClean();
  }

  World world;
};

TEST_F(SecuredTest, NodesOfOneSecretMoveObjectsByEachProtocol) {
  Node &puller = world.Add(With({1})), &owner = world.Add(With({1}));
  for (const Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    EXPECT_TRUE(Pull(puller, owner, protocol).ok());
  }
  EXPECT_EQ(owner.endpoint->counters().peers_proven, 1u);
  EXPECT_EQ(puller.endpoint->counters().peers_proven, 1u);
  world.ExpectClean();
}

TEST_F(SecuredTest, AnotherSecretIsRefusedAndBothAreNamed) {
  Node &puller = world.Add(With({1})), &owner = world.Add(With({2}));
  ExpectRefused(puller, owner, SecretNumber(2).id().ToString());
}

TEST_F(SecuredTest, ANodeWithoutSecretIsRefusedByOneThatHasOne) {
  Node &puller = world.Add(WithoutSecret()), &owner = world.Add(With({1}));
  ExpectRefused(puller, owner, "give this node the same file (--secret-file)");
}

TEST_F(SecuredTest, ANodeWithASecretRefusesToSpeakToOneWithout) {
  Node &puller = world.Add(With({1})), &owner = world.Add(WithoutSecret());
  ExpectRefused(puller, owner, "give the peer the same file (--secret-file)");
}

// The new one is added everywhere, then used first everywhere, then the old one is removed.
TEST_F(SecuredTest, ASecretIsRotatedWhileConnectionsAreMade) {
  std::vector<Node*> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(&world.Add(With({1})));
  std::vector<std::vector<uint8_t>> has(nodes.size(), {1});
  const std::vector<std::vector<uint8_t>> steps = {{1, 2}, {2, 1}, {2}};
  for (const std::vector<uint8_t>& step : steps) {
    for (size_t turn = 0; turn < nodes.size(); ++turn) {
      has[turn] = step;
      for (size_t i = 0; i < nodes.size(); ++i) {  // so that all connections are new
        nodes[i]->DropEndpoint();
        nodes[i]->Reopen();
        nodes[i]->endpoint->SetSecrets(SecretsOf(has[i]));
      }
      for (Node* puller : nodes) {
        for (Node* owner : nodes) {
          if (puller == owner) continue;
          EXPECT_TRUE(Pull(*puller, *owner).ok())
              << "secrets " << step.size() << " at node " << turn << ", " << puller->index << " of " << owner->index;
        }
      }
    }
  }
  world.ExpectClean();
}

TEST_F(SecuredTest, WhatIsUpStaysUpWhenItsSecretIsRemoved) {
  Node &puller = world.Add(With({1})), &owner = world.Add(With({1}));
  EXPECT_TRUE(Pull(puller, owner).ok());
  owner.endpoint->SetSecrets(SecretsOf({2}));
  EXPECT_TRUE(Pull(puller, owner).ok());
  EXPECT_EQ(owner.endpoint->counters().connections_opened, 1u);
}

// ---- what is on the wire

class SealingTest : public SecuredTest {
 protected:
  // Everything that a node's messages and eager chunks say, as it leaves.
  NodeOptions Overheard(bool seals, bool aes = true) {
    NodeOptions options = With({1});
    options.security->seals = seals;
    options.security->aes = aes;
    options.wrap = [this](std::unique_ptr<verbs::Device> device) {
      return WithPostSend(std::move(device), [this](verbs::QueuePair& queue_pair, auto requests) {
        for (const verbs::SendRequest& request : requests) {
          if (request.opcode != verbs::Opcode::kSend) continue;
          for (const verbs::Sge& sge : request.sges) {
            overheard_.append(reinterpret_cast<const char*>(sge.address), sge.length);
            if (changes_ != 0 && --changes_ == 0) sge.address[sge.length / 2] ^= 1;
          }
        }
        return queue_pair.PostSend(requests);
      });
    };
    return options;
  }

  void Exchange(Node& caller, Node& answers) {
    answers.endpoint->SetCallHandler(Handler([](absl::Span<const uint8_t> request, Reply reply) { reply(request); }));
    absl::Status end = absl::UnknownError("no answer");
    const base::Pending pending =
        caller.endpoint->Call(answers.service, {reinterpret_cast<const uint8_t*>(kMarker), sizeof(kMarker)}, Seconds(5),
                              [&end](const absl::StatusOr<absl::Span<const uint8_t>>& reply) { end = reply.status(); });
    EXPECT_TRUE(world.RunUntil([&end] { return !absl::IsUnknown(end); }));
    EXPECT_TRUE(end.ok()) << end;
  }

  bool MarkerWasOverheard() const { return overheard_.find(kMarker) != std::string::npos; }

  std::string overheard_;
  int changes_ = 0;  // counts down; at the end a bit of a message changes on its way
};

TEST_F(SealingTest, NothingThatIsSaidCanBeRead) {
  Node &caller = world.Add(Overheard(true)), &answers = world.Add(Overheard(true));
  Exchange(caller, answers);
  EXPECT_FALSE(MarkerWasOverheard());
  EXPECT_TRUE(Pull(caller, answers).ok());
}

TEST_F(SealingTest, OneSideThatWantsItIsEnough) {
  Node &caller = world.Add(Overheard(false)), &answers = world.Add(Overheard(true));
  Exchange(caller, answers);
  Exchange(answers, caller);
  EXPECT_FALSE(MarkerWasOverheard());
}

TEST_F(SealingTest, WithoutItPeersStillProveThemselves) {
  Node &caller = world.Add(Overheard(false)), &answers = world.Add(Overheard(false));
  Exchange(caller, answers);
  EXPECT_TRUE(MarkerWasOverheard());
  EXPECT_EQ(answers.endpoint->counters().peers_proven, 1u);
  EXPECT_TRUE(Pull(caller, answers, Protocol::kRead).ok());
  NodeOptions stranger = With({2});
  stranger.security->seals = false;
  ExpectRefused(world.Add(stranger), world.Add(Overheard(false)), SecretNumber(1).id().ToString());
}

TEST_F(SealingTest, AProcessorWithoutAesTakesTheOtherCipher) {
  Node &caller = world.Add(Overheard(true, false)), &answers = world.Add(Overheard(true, true));
  Exchange(caller, answers);
  Exchange(answers, caller);
  EXPECT_FALSE(MarkerWasOverheard());
}

// Whichever message it is, those of the handshake among them.
TEST_F(SealingTest, AMessageThatWasChangedOnItsWayIsNeverBelieved) {
  for (int which = 1; which <= 12; ++which) {
    SCOPED_TRACE(which);
    World other;
    overheard_.clear();
    Node &puller = other.Add(Overheard(true)), &owner = other.Add(Overheard(true));
    changes_ = which;
    auto outcome = puller.Pull(owner, owner.AddObject(100'000), Protocol::kEager);
    ASSERT_TRUE(other.Finish(outcome));
    EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
    EXPECT_EQ(changes_, 0);
    const auto noticed = [](const Node& node) {
      return node.endpoint->counters().protocol_errors + node.endpoint->counters().peers_refused;
    };
    EXPECT_GE(noticed(puller) + noticed(owner), 1u);
    other.ExpectClean();
  }
}

// ---- somebody on the path who changes what is agreed

struct Change {
  const char* name;
  std::function<void(ManBetween&)> make;
};

constexpr size_t kSlotsAt = 16, kTokenAt = 32, kSecretAt = 40, kSecurityAt = 48;  // docs/transport.md

std::ostream& operator<<(std::ostream& out, const Change& change) { return out << change.name; }

class ManBetweenTest : public SecuredTest, public ::testing::WithParamInterface<Change> {};

TEST_P(ManBetweenTest, IsNoticedAndNobodyIsServed) {
  ManBetween man;
  GetParam().make(man);
  NodeOptions options = With({1, 2});
  options.wrap = [&man](std::unique_ptr<verbs::Device> device) { return WithManBetween(std::move(device), man); };
  Node &puller = world.Add(With({1, 2})), &owner = world.Add(options);
  EXPECT_FALSE(Pull(puller, owner).ok());
  EXPECT_EQ(owner.source.pins_ever(), 0u);
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 0u);
  EXPECT_EQ(owner.endpoint->counters().connections_opened, 0u);
  man = {};
  EXPECT_TRUE(Pull(puller, owner).ok()) << "he has gone";
  world.ExpectClean();
}

void Flip(std::vector<uint8_t>& bytes, size_t at, uint8_t bits = 1) { bytes[at] ^= bits; }

INSTANTIATE_TEST_SUITE_P(
    All, ManBetweenTest,
    ::testing::Values(
        Change{"OfferToSeal", [](ManBetween& man) { man.asked = [](auto& hello) { Flip(hello, kSecurityAt, 1); }; }},
        Change{"OfferOfACipher", [](ManBetween& man) { man.asked = [](auto& hello) { Flip(hello, kSecurityAt, 2); }; }},
        Change{"OfferOfASecret",
               [](ManBetween& man) {
                 man.asked = [](auto& hello) {
                   const auto other = SecretNumber(2).id().bytes();
                   std::copy(other.begin(), other.end(), hello.begin() + kSecretAt);
                 };
               }},
        Change{"NoOfferAtAll",
               [](ManBetween& man) {
                 man.asked = [](auto& hello) { std::fill(hello.begin() + kSecretAt, hello.end(), 0); };
               }},
        Change{"OfferOfSlots", [](ManBetween& man) { man.asked = [](auto& hello) { Flip(hello, kSlotsAt, 8); }; }},
        Change{"Token", [](ManBetween& man) { man.asked = [](auto& hello) { Flip(hello, kTokenAt); }; }},
        Change{"AnswerToSeal",
               [](ManBetween& man) { man.answered = [](auto& hello) { Flip(hello, kSecurityAt, 1); }; }},
        Change{"AnswerOfACipher",
               [](ManBetween& man) { man.answered = [](auto& hello) { Flip(hello, kSecurityAt, 2); }; }},
        Change{"AnswerOfSlots", [](ManBetween& man) { man.answered = [](auto& hello) { Flip(hello, kSlotsAt, 8); }; }},
        Change{"Address", [](ManBetween& man) { man.peer = [](verbs::Address& peer) { peer.ip.back() ^= 1; }; }},
        Change{"Number", [](ManBetween& man) { man.number = [](uint32_t& number) { number ^= 1; }; }},
        Change{"NumberThatIsNotKnown", [](ManBetween& man) { man.number = [](uint32_t& number) { number = 0; }; }}),
    [](const auto& one) { return std::string(one.param.name); });

// An honest node, but not the one that was asked for: both have the cluster's secret.
TEST_F(SecuredTest, WhoReachesAnotherNodeThanHeAskedForNoticesIt) {
  ManBetween man;
  NodeOptions options = With({1});
  options.wrap = [&man](std::unique_ptr<verbs::Device> device) { return WithManBetween(std::move(device), man); };
  Node &puller = world.Add(options), &meant = world.Add(With({1})), &other = world.Add(With({1}));
  man.service = [&other](verbs::Address& service) { service = other.service; };
  EXPECT_FALSE(Pull(puller, meant).ok());
  EXPECT_EQ(other.endpoint->counters().connections_opened, 0u);
  EXPECT_EQ(puller.endpoint->counters().peers_refused, 1u);
  man = {};
  EXPECT_TRUE(Pull(puller, meant).ok());
  world.ExpectClean();
}

// ---- strangers, who know everything but the secret

class StrangerTest : public SecuredTest {
 protected:
  StrangerTest() : owner(world.Add(With({1}))), stranger(world, 77) {
    stranger.hello.secret = SecretNumber(1).id();
    stranger.hello.seals = stranger.hello.aes = true;
    object = owner.AddObject(1000);
  }

  void Connect() {
    stranger.Connect(owner.service, {0});
    ASSERT_TRUE(world.RunUntil([&] { return stranger.connected(0); }, Seconds(1)));
  }

  // It hears nothing, gets nothing, and is cut off.
  void ExpectNothing(base::Duration limit) {
    EXPECT_TRUE(world.RunUntil([&] { return stranger.disconnected(); }, limit));
    EXPECT_TRUE(stranger.received.empty());
    EXPECT_EQ(owner.source.pins_ever(), 0u);
    EXPECT_EQ(owner.endpoint->counters().connections_opened, 0u);
    EXPECT_EQ(owner.endpoint->counters().peers_refused, 1u);
    EXPECT_EQ(owner.endpoint->counters().protocol_errors, 0u) << "which are logged one by one";
    world.ExpectClean();
  }

  Node& owner;
  RawPeer stranger;
  base::ObjectId object;
};

TEST_F(StrangerTest, WhoSaysNothingIsCutOff) {
  Connect();
  ExpectNothing(security::kHandshakeTime + Seconds(1));
}

TEST_F(StrangerTest, WhoAsksAtOnceIsCutOff) {
  Connect();
  stranger.Send(Transfer(1, object, 1000, Protocol::kRead));
  ExpectNothing(Milliseconds(100));
}

TEST_F(StrangerTest, WhoSpeaksAsOneWhoHasTheSecretIsCutOff) {
  Connect();
  stranger.SendBytes(std::vector<uint8_t>(security::kNoiseOverhead, 0x5a));
  ExpectNothing(Milliseconds(100));
}

TEST_F(StrangerTest, WhoSendsNothingAtAllIsCutOff) {
  Connect();
  stranger.SendBytes({});
  ExpectNothing(Milliseconds(100));
}

TEST_F(StrangerTest, WhoSendsTooMuchIsCutOff) {
  Connect();
  stranger.SendBytes(std::vector<uint8_t>(security::kMaxHandshakeMessage + 1, 1));
  ExpectNothing(Milliseconds(100));
}

// He who asks is not who answers: what an honest node begins with is of no use to a stranger.
TEST_F(StrangerTest, WhoSendsAnHonestNodesWordsIsCutOff) {
  std::vector<uint8_t> first;
  NodeOptions options = With({1});
  options.wrap = [&first](std::unique_ptr<verbs::Device> device) {
    return WithPostSend(std::move(device), [&first](verbs::QueuePair& queue_pair, auto requests) {
      for (const verbs::Sge& sge : requests[0].sges) {
        if (first.empty()) first.assign(sge.address, sge.address + sge.length);
      }
      return queue_pair.PostSend(requests);
    });
  };
  Node &puller = world.Add(options), &other = world.Add(With({1}));
  ASSERT_TRUE(Pull(puller, other).ok());
  ASSERT_EQ(first.size(), security::kNoiseOverhead);
  Connect();
  stranger.SendBytes(first);
  ExpectNothing(Milliseconds(100));
}

TEST_F(StrangerTest, WhoIsAskedAndHasNoSecretIsRefused) {
  Node& puller = world.Add(With({1}));
  stranger.Listen();
  PullRequest request;
  request.id = object;
  request.owner = stranger.service();
  request.size = {1000, 0};
  stranger.on_bytes = [&](const std::vector<uint8_t>& bytes) { stranger.SendBytes(bytes); };  // he sends it back
  auto outcome = puller.Pull(request);
  ASSERT_TRUE(world.Finish(outcome));
  EXPECT_EQ(outcome->status.code(), absl::StatusCode::kUnavailable) << outcome->status;
  EXPECT_EQ(puller.endpoint->counters().connections_opened, 0u);
  EXPECT_EQ(puller.endpoint->counters().peers_refused, 1u);
  world.ExpectClean();
}

// Somebody at the peer's own address who has overheard the connection's name.
TEST_F(SecuredTest, AProvenConnectionGivesWayToNobodyWhoHasNotProvenHimself) {
  std::vector<uint8_t> overheard;
  NodeOptions options = With({1});
  options.wrap = [&overheard](std::unique_ptr<verbs::Device> device) {
    DeviceHooks hooks;
    hooks.on_connect = [&overheard](const verbs::ConnectOptions& asked) {
      overheard.assign(asked.private_data.begin(), asked.private_data.end());
    };
    return WithHooks(std::move(device), std::move(hooks));
  };
  Node &puller = world.Add(options), &owner = world.Add(With({1}));
  ASSERT_TRUE(Pull(puller, owner).ok());
  const std::vector<uint8_t> hello = overheard;
  const auto completions = *puller.device->CreateCompletionQueue(puller.loop, 8, [] {});
  verbs::QueuePairOptions shape;
  shape.send_queue = shape.receive_queue = completions.get();
  const auto queue_pair = *puller.domain->CreateQueuePair(shape);
  verbs::ConnectOptions asks;
  asks.private_data = hello;
  bool up = false;
  const auto connection = *puller.device->connection_manager().Connect(
      *queue_pair, owner.service, asks,
      [&up](const verbs::ConnectionEvent& event) { up |= event.kind == verbs::ConnectionEvent::Kind::kEstablished; });
  ASSERT_TRUE(world.RunUntil([&up] { return up; }, Seconds(1)));
  EXPECT_TRUE(Pull(puller, owner).ok());
  world.RunFor(security::kHandshakeTime + Seconds(1));
  EXPECT_TRUE(Pull(puller, owner).ok());
  EXPECT_EQ(owner.endpoint->counters().connections_opened, 1u);
  EXPECT_EQ(owner.endpoint->counters().peers_refused, 1u);
}

// ---- bulk queue pairs

// The token of a connection travels in the clear, and so does a proof.
TEST_F(SecuredTest, ABulkQueuePairOfAStrangerIsRefusedAndTheRailComesUpAllTheSame) {
  NodeOptions options = WithRails(2);
  options.security = SecurityOf({1});
  std::vector<std::vector<uint8_t>> hellos;
  options.wrap = [&hellos](std::unique_ptr<verbs::Device> device) {
    DeviceHooks hooks;
    hooks.on_connect = [&hellos](const verbs::ConnectOptions& asked) {
      hellos.emplace_back(asked.private_data.begin(), asked.private_data.end());
    };
    return WithHooks(std::move(device), std::move(hooks));
  };
  Node &puller = world.Add(options), &owner = world.Add(options);
  ASSERT_TRUE(Pull(puller, owner).ok());
  ASSERT_EQ(hellos.size(), 1u) << "small objects need no bulk queue pair";
  const auto first = DecodeHello(hellos[0]);
  ASSERT_TRUE(first.ok());

  RawPeer stranger(world, 77);
  stranger.hello = *first;
  stranger.hello.attempt = 1;
  verbs::Address second_rail = owner.AddressOf(1);
  second_rail.port = owner.service.port;
  const auto ask = [&] {
    stranger.Connect(second_rail, {2});
    world.RunFor(Milliseconds(20));
    return !stranger.connected(2);
  };
  EXPECT_TRUE(ask()) << "with no proof";
  EXPECT_TRUE(Pull(puller, owner, Protocol::kRead).ok());
  ASSERT_TRUE(world.RunUntil([&] { return puller.endpoint->counters().rails_joined == 1u; }, Seconds(1)));
  for (const std::vector<uint8_t>& bytes : hellos) {
    const auto overheard = DecodeHello(bytes);
    ASSERT_TRUE(overheard.ok());
    stranger.hello.attempt = overheard->attempt;
    stranger.hello.proof = overheard->proof;
    EXPECT_TRUE(ask()) << "with the proof of queue pair " << int{overheard->queue};
  }
  EXPECT_EQ(owner.endpoint->counters().rails_lost, 0u);
  EXPECT_EQ(puller.endpoint->counters().rails_lost, 0u);
  EXPECT_TRUE(Pull(puller, owner, Protocol::kWrite).ok());
  world.ExpectClean();
}

// ---- many strangers

// Queue pairs of one address, each of which asks for a connection and then says nothing.
class Crowd final {
 public:
  Crowd(World& world, const std::string& address) : loop_(world.time.MakeLoop()), nic_loop_(world.time.MakeLoop()) {
    verbs::soft::DeviceOptions options;
    options.address = *verbs::Address::Parse(address);
    options.seed = 5;
    device_ = *verbs::soft::OpenSoftDevice(*nic_loop_, *world.fabric, world.trace, options);
    domain_ = *device_->CreateProtectionDomain();
    completions_ = *device_->CreateCompletionQueue(*loop_, 64, [] {});
  }

  void Ask(const verbs::Address& service) {
    Hello hello;
    hello.bulk_queue_pairs = hello.reads_served = 1;
    hello.slot_size = 1024;
    hello.first_slots = hello.receive_slots = 8;
    hello.max_transfers = hello.max_calls = 1;
    hello.secret = SecretNumber(1).id();
    hello.token = ++asked_;
    std::vector<uint8_t> bytes(kHelloSize);
    EncodeHello(hello, absl::MakeSpan(bytes));
    verbs::QueuePairOptions shape;
    shape.send_queue = shape.receive_queue = completions_.get();
    shape.max_send_requests = shape.max_receive_requests = 1;
    queue_pairs_.push_back(*domain_->CreateQueuePair(shape));
    verbs::ConnectOptions options;
    options.private_data = bytes;
    auto connection = device_->connection_manager().Connect(*queue_pairs_.back(), service, options,
                                                            [this](const verbs::ConnectionEvent& event) {
                                                              connected_ += event.kind == Kind::kEstablished;
                                                              ended_ += event.kind != Kind::kEstablished;
                                                            });
    if (connection.ok()) connections_.push_back(*std::move(connection));
  }

  uint64_t asked() const { return asked_; }
  uint64_t connected() const { return connected_; }
  uint64_t ended() const { return ended_; }

 private:
  using Kind = verbs::ConnectionEvent::Kind;

  const std::unique_ptr<base::EventLoop> loop_, nic_loop_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::vector<std::unique_ptr<verbs::QueuePair>> queue_pairs_;
  std::vector<std::unique_ptr<verbs::Connection>> connections_;
  uint64_t asked_ = 0, connected_ = 0, ended_ = 0;
};

constexpr uint64_t kHonestWindows = 64 * 1024;  // bytes

TEST_F(SecuredTest, TenThousandHalfOpenConnectionsTakeNoRoomFromHonestPeers) {
  NodeOptions options = With({1});
  options.endpoint.slot_size = 1024;
  Node &owner = world.Add(options), &known = world.Add(options);
  EXPECT_TRUE(Pull(known, owner).ok());
  const uint64_t before = owner.endpoint->use().slot_bytes;
  Crowd crowd(world, "10.0.0.77");
  for (int wave = 0; wave < 100; ++wave) {
    for (int i = 0; i < 100; ++i) crowd.Ask(owner.service);
    world.RunFor(Milliseconds(20));
    EXPECT_LE(owner.endpoint->use().slot_bytes - before, kMaxNewcomersOfPeer * 4 * 1024u + kHonestWindows);
    EXPECT_TRUE(Pull(known, owner).ok());
    if (wave % 20 == 0) {
      Node& newcomer = world.Add(options);
      EXPECT_TRUE(Pull(newcomer, owner).ok()) << "wave " << wave;
    }
  }
  EXPECT_GT(crowd.connected(), 9'000u);
  EXPECT_EQ(owner.endpoint->counters().connections_opened, 6u);
  EXPECT_GT(owner.endpoint->counters().newcomers_dropped, 9'000u);
  world.RunFor(security::kHandshakeTime + Seconds(1));
  EXPECT_EQ(crowd.ended(), crowd.asked());
  world.ExpectClean();
}

}  // namespace
}  // namespace tokamak::transport::testing
