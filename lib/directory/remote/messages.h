// The requests and replies of the remote directory, as bytes (docs/directory.md has them in one picture).
//
//   request   kind 1 | kind's fields           reply   status 1 | text | kind's fields where the status is ok
//
// All of it is untrusted on both sides. Integers are little-endian; texts have a 32-bit length before them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lib/base/codec.h"
#include "lib/directory/directory.h"

namespace tokamak::directory {

enum class RequestKind : uint8_t {
  kJoin = 1,
  kLeave = 2,
  kAnnounce = 3,
  kWithdraw = 4,
  kLocate = 5,  // at once
  kNodes = 6,
  kLocateAny = 7,  // of many objects those that are held, or the first that appear
};

constexpr size_t kMaxStatusText = 512;  // bytes; longer texts are cut

// No request may ask the server to wait longer, so that what waits there is bounded in time.
constexpr base::Duration kMaxRemoteWait = base::Seconds(60);
constexpr size_t kMaxIdsAsked = 512;  // in one request

// Of a node that CheckNode finds in order.
void WriteNode(base::Writer& writer, const NodeInfo& node);
NodeInfo ReadNode(base::Reader& reader);

void WriteObject(base::Writer& writer, const ObjectInfo& object);
ObjectInfo ReadObject(base::Reader& reader);

void WriteStatus(base::Writer& writer, const absl::Status& status);
// kUnavailable also where there is no status.
absl::Status ReadStatus(base::Reader& reader);

// A reply that no honest server sends.
absl::Status NonsenseReply();

}  // namespace tokamak::directory
