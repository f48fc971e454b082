// Conversions between the types of the public headers (include/tokamak) and those of the code
// behind.
#pragma once

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/client/protocol/messages.h"
#include "tokamak/status.h"
#include "tokamak/timeout.h"
#include "tokamak/types.h"

namespace tokamak::client {

Status ToPublic(const absl::Status& status);
ObjectInfo ToPublic(ObjectEntry entry);
ObjectStat ToPublic(StatReply reply);
NodeStats ToPublic(NodeStatsReply reply);
NodeInfo ToPublic(NodeEntry entry);
ViewedNode ToPublic(ViewedEntry entry);
Events ToPublic(EventsNotification notification);

inline base::Duration FromPublic(Timeout timeout) { return base::Nanoseconds(timeout.duration().count()); }

}  // namespace tokamak::client
