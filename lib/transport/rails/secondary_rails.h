// SecondaryRails are all rails of a connection except its primary one, from the owner's
// announcement on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/channels/bulk_channel.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/messages/rail_messages.h"
#include "lib/transport/rails/secondary_rail.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class SecondaryRails final {
 public:
  SecondaryRails(Context& context, RailHost& host, BulkChannel& bulk) : context_(context), host_(host), bulk_(bulk) {}

  // Owner: lets the peer join from now on.
  void Make();
  // Puller: takes the owner's announcement, one address for each rail, once. kInvalidArgument: out
  // of turn or malformed.
  absl::Status Learn(absl::Span<const verbs::Address> rails);
  void Join();
  // kInvalidArgument: no such rail, or out of turn.
  absl::Status OnPeerDown(uint32_t rail, absl::Span<const WantedWrite> wanted);

  // Counts the primary one; 0 before they are made.
  size_t size() const { return rails_.size(); }
  // Null: the primary rail, or none of the connection.
  SecondaryRail* Find(uint32_t rail) const { return rail < rails_.size() ? rails_[rail].get() : nullptr; }

  // Disconnects, for a teardown.
  void DropLinks();

 private:
  Context& context_;
  RailHost& host_;
  BulkChannel& bulk_;
  std::vector<verbs::Address> peers_;                  // puller: by rail
  std::vector<std::unique_ptr<SecondaryRail>> rails_;  // null: the primary one
};

}  // namespace tokamak::transport
