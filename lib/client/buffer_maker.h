// BufferMaker makes the public buffers from the daemon's answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/client/daemon_connection.h"
#include "lib/client/line.h"
#include "lib/client/protocol/entries.h"
#include "lib/client/protocol/messages.h"
#include "tokamak/buffer.h"
#include "tokamak/status.h"

namespace tokamak::client {

class BufferMaker final {
 public:
  // Makes the buffer of an object that a get has pinned.
  static Result<Buffer> Of(const std::shared_ptr<DaemonConnection>& connection, const base::ObjectId& id,
                           const GetEntry& entry);

  // Returns the request that releases what a late reply to a get of `asked` has pinned; empty if it
  // pinned nothing.
  static std::vector<uint8_t> ReleaseOf(absl::Span<const base::ObjectId> asked, absl::Span<const uint8_t> late);

  // Makes a buffer that has its place in the arena: `memory`, of which the first `data_size` bytes
  // are data.
  static MutableBuffer Claimed(std::shared_ptr<DaemonConnection> connection, const base::ObjectId& id,
                               absl::Span<uint8_t> memory, uint64_t data_size, bool confirmed);

  // Makes a buffer that is put when it is sealed, on the line's connection at that time, waiting up
  // to `timeout` for room.
  static MutableBuffer Unclaimed(std::shared_ptr<Line> line, const base::ObjectId& id, uint64_t data_size,
                                 absl::Span<const uint8_t> metadata, base::Duration timeout, bool confirmed,
                                 std::string name);
};

}  // namespace tokamak::client
