// Two connection state machines and a bad network between them: whatever is lost, repeated or reordered, both sides must
// end agreed. The first messages are lost in every possible combination; beyond that, seeds decide.
#include <bitset>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/verbs/soft/connection_state.h"

namespace tokamak::verbs::soft {
namespace {

using base::Duration;
using base::Milliseconds;
using base::Seconds;
using base::Time;
using Kind = ConnectionEvent::Kind;
using Phase = ConnectionPhase;
using Walk = ConnectionActions::Walk;

constexpr Duration kWire = Milliseconds(1);
using Arrivals = std::vector<Duration>;  // of the copies of a message, after the usual time

constexpr Duration kNever = Seconds(100000);

// What the applications do, and when.
struct Script {
  enum class Answer { kAccept, kReject, kNone };
  Answer answer = Answer::kAccept;
  Duration answer_after = Milliseconds(2);
  Duration active_drops_after = kNever;   // from the call to Connect
  Duration passive_drops_after = kNever;  // from Accept
  Duration active_fails_after = kNever;   // its queue pair goes to Error by itself
  bool active_sends_data = false;
};

class World {
 public:
  // What the network does with the message of this number: when the copies arrive.
  using Network = std::function<Arrivals(int)>;

  World(const Script& script, Network network, bool logging)
      : script_(script), network_(std::move(network)), logging_(logging) {
    for (int i = 0; i < 2; ++i) {
      sides_[i].address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, static_cast<uint8_t>(i + 1)};
      sides_[i].next_id = i == 0 ? 1000 : 2000;
    }
  }

  void Run(Duration length) {
    StartActive();
    while (!tasks_.empty() && tasks_.begin()->first.first <= Time() + length) {
      auto task = std::move(tasks_.begin()->second);
      now_ = tasks_.begin()->first.first;
      tasks_.erase(tasks_.begin());
      task();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  struct Side {
    Address address;
    uint32_t next_id = 0;
    std::unique_ptr<ConnectionState> state;
    int made = 0;          // connections, one after the other
    bool dropped = false;  // the application dropped the one it has now
    QueuePairState queue_pair = QueuePairState::kInit;
    bool established = false;  // told so
    bool ended = false;        // told so
    ConnectionEvent::Kind end = Kind::kEstablished;
    uint64_t repeat_ticket = 0;
    uint64_t limit_ticket = 0;
  };

  Side& active() { return sides_[0]; }
  Side& passive() { return sides_[1]; }
  const std::string& log() const { return log_; }

  bool Up(int side) {
    const Side& s = sides_[side];
    return s.state != nullptr && s.state->phase() == Phase::kEstablished;
  }
  bool Over(int side) { return sides_[side].state == nullptr; }

 private:
  template <typename Text>
  void Log(const Text& text) {
    if (logging_) absl::StrAppend(&log_, (now_ - Time()).milliseconds(), " ms: ", text(), "\n");
  }

  void At(Duration delay, std::function<void()> task) {
    tasks_.emplace(std::make_pair(now_ + delay, order_++), std::move(task));
  }

  ConnectionOffer Offer(int side) {
    ConnectionOffer offer;
    offer.queue_pair = 100 + side;
    offer.receive_psn = 7000 + side;
    return offer;
  }

  ConnectionState::Identity NewIdentity(int side) {
    ConnectionState::Identity identity;
    identity.local = sides_[side].address;
    identity.peer = sides_[1 - side].address;
    identity.ca_guid = 1 + side;
    identity.local_id = sides_[side].next_id++;
    identity.transaction = identity.local_id;
    return identity;
  }

  void StartActive() {
    active().state = std::make_unique<ConnectionState>(NewIdentity(0));
    ++active().made;
    Do(0, active().state->Connect(Offer(0)));
    if (script_.active_drops_after < kNever) At(script_.active_drops_after, [this] { Drop(0); });
    if (script_.active_fails_after < kNever) {
      At(script_.active_fails_after, [this] {
        if (active().state == nullptr || active().queue_pair == QueuePairState::kError) return;
        active().queue_pair = QueuePairState::kError;
        Do(0, active().state->OnQueuePairError(absl::AbortedError("retries")));
      });
    }
  }

  void Drop(int side) {
    Side& s = sides_[side];
    if (s.state == nullptr || s.dropped) return;
    s.dropped = true;
    Do(side, s.state->Drop());
  }

  void Ask() {
    const uint32_t id = passive().state->identity().local_id;
    At(script_.answer_after, [this, id] {
      if (passive().state == nullptr || passive().state->identity().local_id != id) return;
      if (passive().state->phase() != Phase::kReqReceived) return;
      if (script_.answer == Script::Answer::kReject) {
        RejMad rej = MakeRej(passive().state->req(), RejectReason::kConsumer);
        return Do(1, passive().state->Reject(rej));
      }
      if (script_.answer == Script::Answer::kNone) return;
      passive().queue_pair = QueuePairState::kInit;
      passive().established = passive().ended = passive().dropped = false;
      Do(1, passive().state->Accept(Offer(1)));
      if (script_.passive_drops_after < kNever) {
        At(script_.passive_drops_after, [this, id] {
          if (passive().state != nullptr && passive().state->identity().local_id == id) Drop(1);
        });
      }
    });
  }

  void Do(int side, const ConnectionActions& actions) {
    Side& s = sides_[side];
    if (actions.stop_timers) {
      s.repeat_ticket = ++tickets_;
      s.limit_ticket = ++tickets_;
    }
    WalkTo(&s, actions.walk);
    if (actions.send) Send(side, *actions.send);
    if (actions.repeat_after) {
      const uint64_t ticket = s.repeat_ticket = ++tickets_;
      At(*actions.repeat_after, [this, side, ticket] {
        if (sides_[side].repeat_ticket == ticket) Do(side, sides_[side].state->OnRepeat());
      });
    }
    if (actions.limit_after) {
      const uint64_t ticket = s.limit_ticket = ++tickets_;
      At(*actions.limit_after, [this, side, ticket] {
        if (sides_[side].limit_ticket == ticket) Do(side, sides_[side].state->OnLimit());
      });
    }
    if (actions.news) Tell(side, *actions.news);
    if (s.state->phase() == Phase::kClosed) s.state = nullptr;
  }

  void WalkTo(Side* s, Walk walk) {
    if (walk == Walk::kReadyToReceive) {
      ASSERT_EQ(s->queue_pair, QueuePairState::kInit) << log_;
      s->queue_pair = QueuePairState::kReadyToReceive;
    } else if (walk == Walk::kReadyToSend) {
      ASSERT_TRUE(s->queue_pair == QueuePairState::kInit || s->queue_pair == QueuePairState::kReadyToReceive) << log_;
      s->queue_pair = QueuePairState::kReadyToSend;
    } else if (walk == Walk::kError) {
      s->queue_pair = QueuePairState::kError;
    }
  }

  void Tell(int side, const ConnectionNews& news) {
    Side& s = sides_[side];
    absl::StrAppend(&log_, now_.picoseconds() / 1000000000, " ms: side ", side, " is told ",
                    static_cast<int>(news.kind), " ", news.status.ToString(), "\n");
    ASSERT_FALSE(s.ended) << log_;
    ASSERT_FALSE(s.dropped) << log_;
    if (news.kind == Kind::kEstablished) {
      ASSERT_FALSE(s.established) << log_;
      ASSERT_EQ(s.queue_pair, QueuePairState::kReadyToSend) << log_;
      s.established = true;
      if (side == 0 && script_.active_sends_data) SendData(0);
    } else {
      ASSERT_EQ(s.queue_pair, QueuePairState::kError) << log_;
      s.ended = true;
      s.end = news.kind;
      At(Milliseconds(1), [this, side] { Drop(side); });  // as an application would
    }
  }

  void Send(int side, const Mad& mad) {
    const Side& s = sides_[side];
    const bool invites_data = std::holds_alternative<RepMad>(mad.body) || std::holds_alternative<RtuMad>(mad.body);
    ASSERT_TRUE(!invites_data || s.queue_pair >= QueuePairState::kReadyToReceive) << log_;
    const MadBytes bytes = EncodeMad(mad);
    Transmit(side, NameOf(mad), [this, side, bytes] {
      const absl::StatusOr<Mad> received = DecodeMad(bytes);
      ASSERT_TRUE(received.ok());
      Receive(1 - side, *received);
    });
  }

  // Data is repeated as the reliable connection would, as long as nothing confirms it; here that is: a few times.
  void SendData(int times) {
    if (times == 5 || !Up(0)) return;
    Transmit(0, "data", [this] {
      Side& p = passive();
      if (p.state != nullptr && p.queue_pair == QueuePairState::kReadyToReceive) Do(1, p.state->OnFirstData());
    });
    At(Milliseconds(67), [this, times] { SendData(times + 1); });
  }

  void Transmit(int side, const char* what, std::function<void()> deliver) {
    const Arrivals arrivals = network_(messages_++);
    Log([&] { return absl::StrCat("side ", side, " sends ", what, arrivals.empty() ? " (lost)" : ""); });
    for (const Duration delay : arrivals) At(kWire + delay, deliver);
  }

  // As the connection manager finds who is meant.
  void Receive(int side, const Mad& mad) {
    Side& s = sides_[side];
    if (const auto* req = std::get_if<ReqMad>(&mad.body)) {
      if (s.state != nullptr) return Do(side, s.state->OnMad(mad));
      ConnectionState::Identity identity = NewIdentity(side);
      identity.transaction = mad.transaction;
      s.state = std::make_unique<ConnectionState>(identity, *req);
      ++s.made;
      Do(side, s.state->Begin());
      return Ask();
    }
    if (s.state != nullptr && Names(*s.state, mad)) return Do(side, s.state->OnMad(mad));
    if (const std::optional<Mad> answer = AnswerForUnknown(mad)) Send(side, *answer);
  }

  static bool Names(const ConnectionState& state, const Mad& mad) {
    return std::visit(
        [&state](const auto& body) {
          if constexpr (std::is_same_v<std::decay_t<decltype(body)>, ReqMad>) {
            return false;
          } else {
            if (body.remote_id == 0) return state.passive() && body.local_id == state.remote_id();
            return body.remote_id == state.identity().local_id &&
                   (state.remote_id() == 0 || body.local_id == state.remote_id());
          }
        },
        mad.body);
  }

  const Script script_;
  const Network network_;
  const bool logging_;
  Time now_;
  uint64_t order_ = 0;
  uint64_t tickets_ = 0;
  std::map<std::pair<Time, uint64_t>, std::function<void()>> tasks_;
  Side sides_[2];
  int messages_ = 0;
  std::string log_;
};

struct NamedScript {
  const char* name;
  Script script;
  bool stays_up;  // where the network lets it
};

std::vector<NamedScript> Scripts() {
  using Answer = Script::Answer;
  std::vector<NamedScript> scripts;
  Script script;
  scripts.push_back({"connect", script, true});
  script.active_sends_data = true;
  scripts.push_back({"connect and send", script, true});
  script = {};
  script.answer_after = Milliseconds(700);
  scripts.push_back({"slow answer", script, true});
  script = {};
  script.answer = Answer::kReject;
  scripts.push_back({"reject", script, false});
  script.answer_after = Milliseconds(700);
  scripts.push_back({"slow reject", script, false});
  script = {};
  script.answer = Answer::kNone;
  scripts.push_back({"no answer", script, false});
  for (const int ms : {0, 1, 3, 4, 5, 150, 1000, 5003}) {
    script = {};
    script.active_drops_after = Milliseconds(ms);
    scripts.push_back({"active drops", script, false});
    script = {};
    script.passive_drops_after = Milliseconds(ms);
    scripts.push_back({"passive drops", script, false});
    script.active_drops_after = Milliseconds(ms + 3);
    scripts.push_back({"both drop", script, false});
    script = {};
    script.active_fails_after = Milliseconds(ms);
    scripts.push_back({"active fails", script, false});
    script.active_sends_data = true;
    scripts.push_back({"active fails having sent", script, false});
  }
  return scripts;
}

bool Agreed(World& world, const NamedScript& script) {
  if (world.Up(0) != world.Up(1) || world.Up(0) != script.stays_up) return false;
  for (int side = 0; side < 2; ++side) {
    if (!world.Up(side) && !world.Over(side)) return false;
  }
  return world.Up(0) || world.active().ended || world.active().dropped;
}

// Each end has come to rest, whatever they think of each other.
bool AtRest(World& world, const NamedScript&) {
  return (world.Up(0) || world.Over(0)) && (world.Up(1) || world.Over(1));
}

// Runs `script` on a network that `make_network` makes; what went wrong is run again, to be told.
template <typename MakeNetwork>
void Explore(const NamedScript& script, const MakeNetwork& make_network, bool (*good)(World&, const NamedScript&),
             const std::string& what) {
  World world(script.script, make_network(), false);
  world.Run(Seconds(120));
  if (good(world, script) && !::testing::Test::HasFailure()) return;
  World again(script.script, make_network(), true);
  again.Run(Seconds(120));
  FAIL() << script.name << ", " << what << "\n" << again.log();
}

TEST(ConnectionExploreTest, EveryCombinationOfLossesEndsAgreed) {
  constexpr int kMessages = 10;
  constexpr int kMostLost = 8;  // beyond that the deadline ends it
  for (const NamedScript& script : Scripts()) {
    for (uint32_t lost = 0; lost < 1u << kMessages; ++lost) {
      if (std::bitset<kMessages>(lost).count() > kMostLost) continue;
      const auto network = [lost] {
        return [lost](int number) {
          const bool lose = number < kMessages && (lost >> number & 1) != 0;
          return lose ? Arrivals() : Arrivals{Duration()};
        };
      };
      ASSERT_NO_FATAL_FAILURE(Explore(script, network, Agreed, "lost " + std::to_string(lost)));
    }
  }
}

TEST(ConnectionExploreTest, AnyTwoMessagesRepeatedOrDelayedEndAgreed) {
  constexpr int kMessages = 6;
  const Duration delays[] = {Duration(), Milliseconds(3), Milliseconds(160), Milliseconds(2500)};
  for (const NamedScript& script : Scripts()) {
    for (int pair = 0; pair < kMessages * kMessages; ++pair) {
      for (const Duration delay : delays) {
        for (const bool twice : {false, true}) {
          const auto network = [=] {
            return [=](int number) {
              if (number != pair / kMessages && number != pair % kMessages) return Arrivals{Duration()};
              return twice ? Arrivals{Duration(), delay} : Arrivals{delay};
            };
          };
          ASSERT_NO_FATAL_FAILURE(
              Explore(script, network, Agreed, absl::StrCat(pair, " late by ", delay.milliseconds(), " ms ", twice)));
        }
      }
    }
  }
}

TEST(ConnectionExploreTest, SeededNetworksEndAgreed) {
  for (const NamedScript& script : Scripts()) {
    for (uint64_t seed = 0; seed < 500; ++seed) {
      const auto network = [seed] {
        base::Random random(seed);
        const double loss = random.Fraction() * 0.5;
        const double repeat = random.Fraction() * 0.5;
        const uint64_t spread = 1 + random.Below(400);
        return [random, loss, repeat, spread](int number) mutable {
          Arrivals arrivals;
          if (number > 14 || !random.Chance(loss)) arrivals.push_back(Milliseconds(random.Below(spread)));
          if (!arrivals.empty() && random.Chance(repeat)) arrivals.push_back(Milliseconds(random.Below(spread * 4)));
          return arrivals;
        };
      };
      ASSERT_NO_FATAL_FAILURE(Explore(script, network, Agreed, "seed " + std::to_string(seed)));
    }
  }
}

// The network breaks for good after some message: everything that is not established must end by itself.
TEST(ConnectionExploreTest, ASilentPeerIsGivenUpInBoundedTime) {
  for (const NamedScript& script : Scripts()) {
    for (int last = 0; last < 12; ++last) {
      const auto network = [last] {
        return [last](int number) { return number < last ? Arrivals{Duration()} : Arrivals(); };
      };
      ASSERT_NO_FATAL_FAILURE(Explore(script, network, AtRest, "cut after " + std::to_string(last)));
    }
  }
}

}  // namespace
}  // namespace tokamak::verbs::soft
