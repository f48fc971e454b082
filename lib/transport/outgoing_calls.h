// OutgoingCalls are our short requests to one peer, until their replies come.
//
// The peer answers a limited number of them at once (its hello gives it); further ones wait here,
// and so do calls that would only wait for the peer's slots behind kMostQueued messages: here
// urgent ones overtake them. A call that was sent and then passes its deadline or is cancelled is
// over for the caller, but counts until the peer has answered it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/containers/numbered_table.h"
#include "lib/base/handle.h"
#include "lib/transport/caller.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/peer_connection.h"

namespace tokamak::transport {

class OutgoingCalls final {
 public:
  static constexpr size_t kMaxCalls = 16384;  // sent and waiting
  static constexpr size_t kMostQueued = 32;

  enum class Urgency { kUsual, kFirst };

  // `last_number` is shared with the pulls.
  OutgoingCalls(Context& context, PeerConnection& connection, uint64_t& last_number)
      : context_(context), connection_(connection), last_number_(last_number) {}
  ~OutgoingCalls();

  bool full() const { return calls_.size() >= kMaxCalls; }
  // Returns null when full.
  [[nodiscard]] base::Pending Add(absl::Span<const uint8_t> request, base::Duration deadline, Urgency urgency,
                                  Caller::CallCallback done);

  // Sends the calls that may leave, once the connection is up.
  void SendWaiting();

  // Passes on the reply to, or the refusal of, one of our calls. Returns false if there is no such
  // call.
  [[nodiscard]] bool OnReply(uint64_t number, absl::StatusOr<absl::Span<const uint8_t>> reply);

  // The connection is gone; no more is sent.
  void OnBroken(const absl::Status& status);

  bool empty() const { return calls_.empty(); }

 private:
  class CallHandle;
  struct OneCall {
    std::vector<uint8_t> request;  // until it is sent
    base::Time deadline_time;
    base::Timer deadline;
    Caller::CallCallback done;
    CallHandle* handle = nullptr;  // null: the caller has its answer, or has cancelled
    Urgency urgency = Urgency::kUsual;
    uint64_t number = 0;  // 0: not sent
    base::Link<OneCall> table_link;
    base::Link<OneCall> waiting_link;
  };
  // Time within which waiting messages are mostly gone.
  static constexpr base::Duration kLookAgain = base::Microseconds(20);
  using List = base::IntrusiveList<OneCall, &OneCall::waiting_link>;

  List& ListOf(const OneCall& call) { return call.urgency == Urgency::kFirst ? urgent_ : waiting_; }
  // Takes the next call that may be sent, null if none.
  OneCall* TakeNext();
  void Refuse(OneCall* call);
  void OnDeadline(OneCall* call);
  void Cancel(OneCall* call);
  Caller::CallCallback TakeCallback(OneCall* call);
  void Forget(OneCall* call);

  Context& context_;
  PeerConnection& connection_;
  uint64_t& last_number_;
  base::NumberedTable<OneCall> calls_;
  List urgent_;
  List waiting_;
  base::Timer looking_again_;
  uint32_t asked_ = 0;
};

}  // namespace tokamak::transport
