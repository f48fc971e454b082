// Two connection state machines, what their applications do, and a network between them that does
// what the test says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/verbs/soft/cm/connection_state.h"

namespace tokamak::verbs::soft {

constexpr base::Duration kWire = base::Milliseconds(1);
using Arrivals = std::vector<base::Duration>;  // of the copies of a message, after the usual time

constexpr base::Duration kNever = base::Seconds(100000);

// The steps of the applications and their times.
struct Script {
  enum class Answer { kAccept, kReject, kNone };
  Answer answer = Answer::kAccept;
  base::Duration answer_after = base::Milliseconds(2);
  base::Duration active_drops_after = kNever;   // from the call to Connect
  base::Duration passive_drops_after = kNever;  // from Accept
  base::Duration active_fails_after = kNever;   // its queue pair goes to Error by itself
  bool active_sends_data = false;
};

// Both sides, the network between them and the clock.
class World final {
 public:
  // The fate of the message of this number: when its copies arrive.
  using Network = std::function<Arrivals(int)>;

  World(const Script& script, Network network, bool logging)
      : script_(script), network_(std::move(network)), logging_(logging) {
    for (int i = 0; i < 2; ++i) {
      sides_[i].address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, static_cast<uint8_t>(i + 1)};
      sides_[i].next_id = i == 0 ? 1000 : 2000;
    }
  }

  void Run(base::Duration length) {
    StartActive();
    while (!tasks_.empty() && tasks_.begin()->first.first <= base::Time() + length) {
      auto task = std::move(tasks_.begin()->second);
      now_ = tasks_.begin()->first.first;
      tasks_.erase(tasks_.begin());
      task();
      if (testing::Test::HasFatalFailure()) return;
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
    ConnectionEvent::Kind end = ConnectionEvent::Kind::kEstablished;
    uint64_t repeat_ticket = 0;
    uint64_t limit_ticket = 0;
  };

  Side& active() { return sides_[0]; }
  Side& passive() { return sides_[1]; }
  const std::string& log() const { return log_; }

  bool Up(int side) {
    const Side& s = sides_[side];
    return s.state != nullptr && s.state->phase() == ConnectionPhase::kEstablished;
  }
  bool Over(int side) { return sides_[side].state == nullptr; }
  int lost() const { return lost_; }  // messages

 private:
  template <typename Text>
  void Log(const Text& text) {
    if (logging_) absl::StrAppend(&log_, (now_ - base::Time()).milliseconds(), " ms: ", text(), "\n");
  }

  void At(base::Duration delay, std::function<void()> task) {
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
      if (passive().state->phase() != ConnectionPhase::kReqReceived) return;
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
    if (s.state->phase() == ConnectionPhase::kClosed) s.state = nullptr;
  }

  void WalkTo(Side* s, ConnectionActions::Walk walk) {
    if (walk == ConnectionActions::Walk::kReadyToReceive) {
      ASSERT_EQ(s->queue_pair, QueuePairState::kInit) << log_;
      s->queue_pair = QueuePairState::kReadyToReceive;
    } else if (walk == ConnectionActions::Walk::kReadyToSend) {
      ASSERT_TRUE(s->queue_pair == QueuePairState::kInit || s->queue_pair == QueuePairState::kReadyToReceive) << log_;
      s->queue_pair = QueuePairState::kReadyToSend;
    } else if (walk == ConnectionActions::Walk::kError) {
      s->queue_pair = QueuePairState::kError;
    }
  }

  void Tell(int side, const ConnectionNews& news) {
    Side& s = sides_[side];
    absl::StrAppend(&log_, now_.picoseconds() / 1000000000, " ms: side ", side, " is told ",
                    static_cast<int>(news.kind), " ", news.status.ToString(), "\n");
    ASSERT_FALSE(s.ended) << log_;
    ASSERT_FALSE(s.dropped) << log_;
    if (news.kind == ConnectionEvent::Kind::kEstablished) {
      ASSERT_FALSE(s.established) << log_;
      ASSERT_EQ(s.queue_pair, QueuePairState::kReadyToSend) << log_;
      s.established = true;
      if (side == 0 && script_.active_sends_data) SendData(0);
    } else {
      ASSERT_EQ(s.queue_pair, QueuePairState::kError) << log_;
      s.ended = true;
      s.end = news.kind;
      At(base::Milliseconds(1), [this, side] { Drop(side); });  // as an application would
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

  // Data is repeated as the reliable connection would, as long as nothing confirms it; here that
  // is: a few times.
  void SendData(int times) {
    if (times == 5 || !Up(0)) return;
    Transmit(0, "data", [this] {
      Side& p = passive();
      if (p.state != nullptr && p.queue_pair == QueuePairState::kReadyToReceive) Do(1, p.state->OnFirstData());
    });
    At(base::Milliseconds(67), [this, times] { SendData(times + 1); });
  }

  void Transmit(int side, const char* what, std::function<void()> deliver) {
    const Arrivals arrivals = network_(messages_++);
    lost_ += arrivals.empty();
    Log([&] { return absl::StrCat("side ", side, " sends ", what, arrivals.empty() ? " (lost)" : ""); });
    for (const base::Duration delay : arrivals) At(kWire + delay, deliver);
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
    if (std::holds_alternative<ReqMad>(mad.body)) return false;
    const ConnectionIds ids = IdsOf(mad).value();
    if (ids.remote == 0) return state.passive() && ids.local == state.remote_id();
    return ids.remote == state.identity().local_id && (state.remote_id() == 0 || ids.local == state.remote_id());
  }

  const Script script_;
  const Network network_;
  const bool logging_;
  base::Time now_;
  uint64_t order_ = 0;
  uint64_t tickets_ = 0;
  std::map<std::pair<base::Time, uint64_t>, std::function<void()>> tasks_;
  Side sides_[2];
  int messages_ = 0;
  int lost_ = 0;
  std::string log_;
};

}  // namespace tokamak::verbs::soft
