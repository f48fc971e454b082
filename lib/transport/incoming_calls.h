// IncomingCalls are the short requests of one peer that the call handler is answering.
//
// Law: each is answered once: by the handler, or for it when it drops the reply, takes too long or does not exist.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/intrusive_list.h"
#include "lib/base/numbered_table.h"
#include "lib/transport/connection.h"
#include "lib/transport/context.h"
#include "lib/transport/message.h"

namespace tokamak::transport {

class IncomingCalls final {
 public:
  explicit IncomingCalls(Context& context) : context_(context), self_(std::make_shared<IncomingCalls*>(this)) {}
  ~IncomingCalls() { *self_ = nullptr; }
  void Use(Connection& connection) { connection_ = &connection; }

  // kInvalidArgument: more at once than we said we answer.
  absl::Status OnCall(const Message& message);

  bool empty() const { return calls_.empty(); }

 private:
  class Ticket;
  struct OneCall {
    base::Timer deadline;
    base::Link<OneCall> table_link;
  };

  void Answer(uint64_t number, absl::Span<const uint8_t> reply);
  void Refuse(uint64_t number, const absl::Status& status);
  bool Forget(uint64_t number);

  Context& context_;
  Connection* connection_ = nullptr;
  base::NumberedTable<OneCall> calls_;
  const std::shared_ptr<IncomingCalls*> self_;  // what replies hold: null when this is gone
};

}  // namespace tokamak::transport
