// EngineCalls are this node's calls to other nodes through one engine: their bounds, and the turns
// in which they are sent.
//
//   Call, for the node's own life ------------------> Sender::Send ... End, or Sender::Cancel
//   programs() ----> may its peer have one more? ---> the same
//                    no: it waits for its turn
//
// Law: each call's callback runs once, with the reply, an error of the engine, kDeadlineExceeded
// (its turn did not come) or what EndAll says, unless its handle is dropped before.
// Thread rule: the node's control loop.
#pragma once

#include <cstddef>
#include <cstdint>
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
#include "lib/transport/caller.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

class EngineCalls final {
 public:
  using CallCallback = transport::Caller::CallCallback;

  // A call to be sent.
  struct Request {
    uint64_t call;  // its token
    bool own;       // true if it is for this node's life, and goes before all others
    const verbs::Address& peer;
    base::Duration deadline;
    absl::Span<const uint8_t> bytes;  // valid during Send
  };

  // The engine's way to the endpoint.
  class Sender {
   public:
    // Sends a call. End follows, in a later task, unless the call is cancelled or the endpoint
    // ends. Returns what Cancel needs to be given for it, or null.
    [[nodiscard]] virtual base::Pending Send(const Request& request) = 0;
    // Cancels a call that was sent, given what Send returned. Returns true if it is over, false if
    // End is still to come: until then the call counts.
    [[nodiscard]] virtual bool Cancel(uint64_t call, base::Pending sent) = 0;

   protected:
    ~Sender() = default;
  };

  // At most `max_calls` calls for programs are under way at once. `loop` and `sender` must outlive
  // it.
  EngineCalls(base::EventLoop& loop, size_t max_calls, Sender& sender);
  ~EngineCalls();
  EngineCalls(const EngineCalls&) = delete;
  EngineCalls& operator=(const EngineCalls&) = delete;

  // Takes calls from now on, of at most `max_call_size` bytes as the endpoint has it.
  void Open(uint32_t max_call_size) {
    open_ = true;
    max_call_size_ = max_call_size;
  }
  // Refuses calls from now on with EngineGone(). The calls under way wait for EndAll.
  void Close() { open_ = false; }
  // After Close, ends all calls with EngineGone(), in the order in which they began. A callback may
  // drop this.
  void EndAll();

  // See Engine::Call.
  [[nodiscard]] base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                   base::Duration deadline, CallCallback done);
  // See Engine::programs.
  transport::Caller& programs() { return programs_; }
  uint32_t max_call_size() const { return max_call_size_; }

  // The endpoint has ended a call that was sent; `reply` is valid during the call.
  void End(uint64_t call, const absl::StatusOr<absl::Span<const uint8_t>>& reply);

 private:
  class CallHandle;  // what the asker of one call holds
  using Turns = base::FairTurns<verbs::Address>;

  class Programs final : public transport::Caller {
   public:
    explicit Programs(EngineCalls& calls) : calls_(calls) {}
    [[nodiscard]] base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                     base::Duration deadline, CallCallback done) override {
      return calls_.CallInTurn(peer, request, deadline, std::move(done));
    }
    uint32_t max_call_size() const override { return calls_.max_call_size_; }

   private:
    EngineCalls& calls_;
  };

  // A call until its end. The turn is a program's; idle: ours.
  struct OneCall : Turns::Turn {
    OneCall(uint64_t t, const verbs::Address& p, CallCallback d) : token(t), peer(p), done(std::move(d)) {}
    const uint64_t token;
    const verbs::Address peer;
    CallCallback done;
    CallHandle* handle = nullptr;  // null: nobody waits for it any more
    bool own = false;              // true if it is of this node's life, and waited for
    base::Pending sent;            // what Send returned
    std::vector<uint8_t> request;  // while it waits for its turn
    base::Time deadline;           // the same
    base::Timer overdue;           // the same
    base::Link<OneCall> table_link;
  };

  base::Pending Refuse(absl::Status why, CallCallback done);
  OneCall* Add(const verbs::Address& peer, CallCallback done);
  base::Pending CallInTurn(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                           CallCallback done);
  void Send(OneCall* call, absl::Span<const uint8_t> request, base::Duration deadline);
  void SendNext();
  void SendNextSoon();
  void Overdue(OneCall* call);
  void Cancel(OneCall* call);
  CallCallback TakeCallback(OneCall* call);
  CallCallback TakeOut(OneCall* call);

  base::EventLoop& loop_;
  Sender& sender_;
  Programs programs_{*this};
  bool open_ = false;
  uint32_t max_call_size_ = 0;
  uint64_t last_token_ = 0;
  base::NumberedTable<OneCall> calls_;
  Turns turns_;           // of the programs'; after the calls: it is dropped before them
  size_t own_calls_ = 0;  // of calls_
  base::Timer next_;      // sends those whose turn came as others were cancelled
  base::Answers refused_;
  const base::Lifetime lifetime_;  // last: over before what is dropped above
};

}  // namespace tokamak::node
