// OutgoingCalls are the short requests that we ask of one peer, until their replies come.
//
// The peer answers a number of them at once (its hello says how many); others wait here. A call
// that was sent and then passes its deadline or is cancelled is over for the caller, but counts
// until the peer has answered it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/handle.h"
#include "lib/base/intrusive_list.h"
#include "lib/base/numbered_table.h"
#include "lib/transport/caller.h"
#include "lib/transport/connection.h"
#include "lib/transport/context.h"
#include "lib/transport/message.h"

namespace tokamak::transport {

class OutgoingCalls final {
 public:
  static constexpr size_t kMaxCalls = 16384;  // under way and waiting

  // Numbers come from `last_number`, shared with the pulls.
  OutgoingCalls(Context& context, Connection& connection, uint64_t& last_number)
      : context_(context), connection_(connection), last_number_(last_number) {}
  ~OutgoingCalls();

  bool full() const { return calls_.size() >= kMaxCalls; }
  // Not when full.
  [[nodiscard]] base::Pending Add(absl::Span<const uint8_t> request, base::Duration deadline,
                                  Caller::CallCallback done);

  // Sends what may be sent, when the connection is up.
  void SendWaiting();

  // The reply, or a refusal, of a call that we made; false: no such call.
  [[nodiscard]] bool OnReply(uint64_t number, absl::StatusOr<absl::Span<const uint8_t>> reply);

  // The connection is gone.
  void OnBroken(const absl::Status& status);

  bool empty() const { return calls_.empty(); }

 private:
  class CallHandle;
  struct OneCall {
    std::vector<uint8_t> request;  // until it is sent
    base::Time deadline_time;
    base::Timer deadline;
    Caller::CallCallback done;
    CallHandle* handle = nullptr;  // null: the caller has its answer, or wants none
    uint64_t number = 0;           // 0: was not sent
    base::Link<OneCall> table_link;
    base::Link<OneCall> waiting_link;
  };
  void Refuse(OneCall* call);
  void OnDeadline(OneCall* call);
  void Cancel(OneCall* call);
  Caller::CallCallback TakeCallback(OneCall* call);
  void Forget(OneCall* call);

  Context& context_;
  Connection& connection_;
  uint64_t& last_number_;
  base::NumberedTable<OneCall> calls_;
  base::IntrusiveList<OneCall, &OneCall::waiting_link> waiting_;
  uint32_t asked_ = 0;
};

}  // namespace tokamak::transport
