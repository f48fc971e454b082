// EngineLink is the control loop's end of an engine: what the node asks of the transport, and what
// peers ask of the node.
//
// Both loops may be one thread's (a simulation). Set-up and tear-down are the wiring's: make the
// link on the control loop, open the host (engine_host.h) on the engine loop, drop the host first,
// while the control loop stands still. Operations under way then, and later ones, end with
// kUnavailable.
// Law: memory of a pull and pins of peers are given back only when the engine has said so, or is
// gone.
// Law: what this node's life needs of other nodes (its lease, and what it holds) has calls of its
// own, Call; what programs ask for has the others, programs(), and waits for its turn there: peers
// take turns, and none has the last places. So a lease is not lost because programs are busy.
// Thread rule: the node's control loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/answers.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/containers/numbered_table.h"
#include "lib/base/event_loop.h"
#include "lib/base/fair_turns.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/base/mailbox.h"
#include "lib/node/engines/engine_messages.h"
#include "lib/node/engines/outbox.h"
#include "lib/transport/caller.h"
#include "lib/transport/object_access.h"

namespace tokamak::node {

class EngineHost;

class EngineLink final : public transport::Caller {
 public:
  // Who serves the peers: the node. A pin is answered later or at once, with Pinned.
  struct Handlers {
    std::function<void(transport::PinId pin, const base::ObjectVersion& version)> pin;
    std::function<void(transport::PinId pin)> unpin;
    transport::CallHandler call;
  };
  using PullCallback = std::function<void(const absl::Status&, const transport::TransferReport&)>;

  // At most `max_calls` calls for programs are under way at once.
  explicit EngineLink(base::EventLoop& control_loop, size_t max_calls = kMaxEngineCalls);
  ~EngineLink() override;

  // Without handlers, before and after, peers are refused. StopServing drops the work on answers.
  void Serve(Handlers handlers) { handlers_ = std::move(handlers); }
  void StopServing();

  // Between the host's opening and its end.
  bool open() const { return to_engine_ != nullptr; }
  // Where the engine listens; set when its host opened.
  const verbs::Address& address() const { return address_; }
  size_t pulls() const { return pulls_.size(); }

  // Returns a token for Cancel. `memory` is the object's place, `moved` the number of its bytes
  // received so far; both must stay until `done` runs, after which nobody touches them.
  // kResourceExhausted: kMaxEnginePulls run already; kUnavailable: the engine is gone.
  absl::StatusOr<uint64_t> Pull(const transport::PullRequest& request, absl::Span<uint8_t> memory,
                                std::atomic<uint64_t>& moved, PullCallback done);
  // `done` comes as soon as the memory is safe.
  void Cancel(uint64_t token);

  // Answers Handlers::pin.
  void Pinned(transport::PinId pin, absl::StatusOr<transport::PinnedObject> object);

  // The engine refuses the peers' new transfers from now on. Runs `done` when it serves nothing any
  // more and the peers have all that it sent them, or when it is gone.
  void Drain(std::function<void()> done);

  // For this node's own life, which knows how many it has under way: kResourceExhausted beyond
  // kOwnCalls.
  [[nodiscard]] base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                   base::Duration deadline, CallCallback done) override;
  uint32_t max_call_size() const override { return max_call_size_; }

  // For all other calls. kDeadlineExceeded: also if a call waits for its turn until its deadline,
  // and is not sent; kResourceExhausted: kMaxCallsWaiting wait already.
  transport::Caller& programs() { return programs_; }

 private:
  friend class EngineHost;

  class Ticket;      // the right to answer one call
  class CallHandle;  // what the asker of one call holds
  using Turns = base::FairTurns<verbs::Address>;

  class Programs final : public transport::Caller {
   public:
    explicit Programs(EngineLink& link) : link_(link) {}
    [[nodiscard]] base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                     base::Duration deadline, CallCallback done) override {
      return link_.CallInTurn({0, /*own=*/false, peer, deadline, {request.begin(), request.end()}}, std::move(done));
    }
    uint32_t max_call_size() const override { return link_.max_call_size_; }

   private:
    EngineLink& link_;
  };

  struct OnePull {
    OnePull(uint64_t t, PullCallback d) : token(t), done(std::move(d)) {}
    const uint64_t token;
    PullCallback done;
    base::Link<OnePull> table_link;
  };
  // A call of ours, until the engine has reported its end. The turn is a program's; idle: ours.
  struct OneCall : Turns::Turn {
    OneCall(uint64_t t, CallCallback d) : token(t), done(std::move(d)) {}
    const uint64_t token;
    CallCallback done;
    CallHandle* handle = nullptr;  // null: nobody waits for it any more
    bool own = false;              // of this node's life, and waited for
    CallCommand command;           // while it waits for its turn
    base::Time deadline;           // the same
    base::Timer overdue;           // the same
    base::Link<OneCall> table_link;
  };
  // A call of a peer that is being answered.
  struct OneCalled {
    explicit OneCalled(uint64_t t) : token(t) {}
    const uint64_t token;
    base::Pending work;
    base::Link<OneCalled> table_link;
  };

  Handlers Refusal();
  void Handle(const DrainedReport& report);
  void Handle(const PullDoneReport& report);
  void Handle(const PinReport& report) { handlers_.pin(report.pin, report.version); }
  void Handle(const UnpinReport& report) { handlers_.unpin(report.pin); }
  void Handle(const CallDoneReport& report);
  void Handle(const CalledReport& report);
  void Handle(const CallCancelledReport& report);
  void HandleAny(const EngineReport& report);

  base::Pending RefuseCall(absl::Status why, CallCallback done);
  OneCall* AddCall(CallCallback done);
  base::Pending CallInTurn(CallCommand command, CallCallback done);
  void SendNextCalls();
  void OverdueCall(OneCall* call);
  void CancelCall(OneCall* call);
  CallCallback TakeCallback(OneCall* call);
  CallCallback TakeOut(OneCall* call);
  PullCallback TakeOut(OnePull* pull);
  void Answer(uint64_t token, absl::StatusOr<std::vector<uint8_t>> reply);
  void DropCalled(OneCalled* called);
  void Closed();
  void Send(EngineCommand command);

  base::EventLoop& loop_;
  Programs programs_{*this};
  base::Mailbox<EngineReport> from_engine_;
  std::unique_ptr<Outbox<EngineCommand>> to_engine_;  // while the host lives
  std::vector<EngineReport> last_reports_;            // left by a host that is gone
  const std::unique_ptr<base::Signal> closed_;        // raised by it
  Handlers handlers_;
  verbs::Address address_;
  uint32_t max_call_size_ = 0;
  uint64_t last_token_ = 0;
  base::NumberedTable<OnePull> pulls_;  // by token
  base::NumberedTable<OneCall> calls_;
  Turns turns_;           // of the programs'; after the calls: it is dropped before them
  size_t own_calls_ = 0;  // of calls_
  base::NumberedTable<OneCalled> called_;
  std::vector<std::function<void()>> draining_;
  base::Answers refused_;
  const base::Lifetime lifetime_;  // last: over before what is dropped above
};

}  // namespace tokamak::node
