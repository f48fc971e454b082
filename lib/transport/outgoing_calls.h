// OutgoingCalls are our short requests to one peer, until their replies come.
//
// Beyond the peer's max_calls they wait here, and behind kMostQueued messages, so that urgent ones
// overtake. A sent call that is cancelled or past its deadline is over for the caller, but counts
// until the peer has answered.
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

  // `last_number`: shared with the pulls.
  OutgoingCalls(Context& context, PeerConnection& connection, uint64_t& last_number)
      : context_(context), connection_(connection), last_number_(last_number) {}
  ~OutgoingCalls();

  bool full() const { return calls_.size() >= kMaxCalls; }
  // Must not be full.
  [[nodiscard]] base::Pending Add(absl::Span<const uint8_t> request, base::Duration deadline, Urgency urgency,
                                  Caller::CallCallback done);

  // Needs a connection that is up.
  void SendWaiting();

  // Takes a reply or refusal. Returns false if there is no such call.
  [[nodiscard]] bool OnReply(uint64_t number, absl::StatusOr<absl::Span<const uint8_t>> reply);

  void OnBroken(const absl::Status& status);

  bool empty() const { return calls_.empty(); }

 private:
  class CallHandle;
  struct OneCall {
    std::vector<uint8_t> request;  // until sent
    base::Time deadline_time;
    base::Timer deadline;
    Caller::CallCallback done;
    CallHandle* handle = nullptr;  // null: answered, or cancelled
    Urgency urgency = Urgency::kUsual;
    uint64_t number = 0;  // 0: not sent
    base::Link<OneCall> table_link;
    base::Link<OneCall> waiting_link;
  };
  // Waiting messages are mostly gone by then.
  static constexpr base::Duration kLookAgain = base::Microseconds(20);
  using List = base::IntrusiveList<OneCall, &OneCall::waiting_link>;

  List& ListOf(const OneCall& call) { return call.urgency == Urgency::kFirst ? urgent_ : waiting_; }
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
