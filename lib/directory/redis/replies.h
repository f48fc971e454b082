// Turns the answers of the scripts into the directory's. kUnavailable: no script of ours gives such
// an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/directory/directory.h"
#include "lib/directory/redis/server/reply.h"

namespace tokamak::directory::redis {

absl::StatusOr<JoinReply> ToJoined(const absl::StatusOr<Reply>& reply, const NodeId& node);
absl::StatusOr<UpdateStatuses> ToUpdated(const absl::StatusOr<Reply>& reply, const NodeId& node, size_t count);
// `key`: the object's at the server, for errors. Another object's name counts as none.
absl::StatusOr<LocatedObject> ToObject(const absl::StatusOr<Reply>& reply, const base::ObjectId& id,
                                       const NodeId& puller, const std::string& key);
absl::StatusOr<DeleteReply> ToDeleted(const absl::StatusOr<Reply>& reply, base::Duration recovery);
absl::StatusOr<std::vector<uint32_t>> ToVerified(const absl::StatusOr<Reply>& reply, const NodeId& node, size_t count);
absl::StatusOr<HeldReply> ToHeld(const absl::StatusOr<Reply>& reply, const NodeId& node);
// Leaves out overwritten entries.
absl::StatusOr<std::vector<RosterEntry>> ToRoster(const absl::StatusOr<Reply>& reply);

}  // namespace tokamak::directory::redis
