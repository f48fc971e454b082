// IncomingCalls are the short requests of one peer that the call handler is answering.
//
// Law: each is answered once: by the handler, or for it upon a cancel, the deadline, a dropped
// reply or a missing handler. The handler's work is dropped with the call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/containers/numbered_table.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/peer_connection.h"

namespace tokamak::transport {

class IncomingCalls final {
 public:
  IncomingCalls(Context& context, PeerConnection& connection) : context_(context), connection_(connection) {}

  // `nth`: see Reply::nth. kInvalidArgument: more calls at once than our hello allows.
  absl::Status OnCall(const Message& message, uint32_t nth);
  // Returns false if there is none.
  [[nodiscard]] bool OnCancel(uint64_t number);

  bool empty() const { return calls_.empty(); }

 private:
  class Ticket;
  struct OneCall {
    base::Timer deadline;
    base::Pending work;
    base::Link<OneCall> table_link;
  };

  void Answer(uint64_t number, absl::Span<const uint8_t> reply);
  void Refuse(uint64_t number, const absl::Status& status);
  bool Forget(uint64_t number);
  void DropEnded();

  Context& context_;
  PeerConnection& connection_;
  base::NumberedTable<OneCall> calls_;
  std::vector<base::Pending> ended_;  // of calls that are over
  base::Timer dropping_;
  const base::Lifetime lifetime_;  // last: ends first
};

}  // namespace tokamak::transport
