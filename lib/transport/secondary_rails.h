// SecondaryRails are all rails of a connection but its primary one, from the time when the owner
// has said where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/bulk_channel.h"
#include "lib/transport/context.h"
#include "lib/transport/message.h"
#include "lib/transport/secondary_rail.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class SecondaryRails final {
 public:
  SecondaryRails(Context& context, SecondaryRail::Host& host, BulkChannel& bulk)
      : context_(context), host_(host), bulk_(bulk) {}

  // The owner: the peer may join them from now on.
  void Make();
  // The puller: joins those that the owner names, one address for each rail of the connection,
  // once. kInvalidArgument: it cannot say that.
  absl::Status Join(absl::Span<const verbs::Address> rails);
  // RAIL_DOWN came. kInvalidArgument: there is no such rail, or it cannot say that of it.
  absl::Status OnPeerDown(const Message& message);

  // Of the connection, with the primary one; 0 before they are made.
  size_t size() const { return rails_.size(); }
  // Null: the primary rail, or none of the connection.
  SecondaryRail* Find(uint32_t rail) const { return rail < rails_.size() ? rails_[rail].get() : nullptr; }

  // Disconnects, for a connection that is torn down.
  void DropLinks();

 private:
  Context& context_;
  SecondaryRail::Host& host_;
  BulkChannel& bulk_;
  std::vector<std::unique_ptr<SecondaryRail>> rails_;  // null: the primary one
};

}  // namespace tokamak::transport
