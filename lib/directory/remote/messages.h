// The requests and replies of the remote directory, as bytes (drawn in docs/directory.md).
//
//   request   kind 1 | kind's fields
//   reply     status 1 | text | kind's fields if the status is OK
//
// Untrusted on both sides. Integers are little-endian; texts and lists have a 32-bit length before
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/codec.h"
#include "lib/directory/directory.h"

namespace tokamak::directory {

enum class RequestKind : uint8_t {
  kJoin = 1,
  kLeave = 2,
  kUpdate = 3,
  kLocate = 4,  // several objects, at once
  kDelete = 5,
  kVerify = 6,
  kRoster = 7,
  kWatch = 8,  // begins and ends waits for objects
  kPoll = 9,   // held until one of them appears
  kHeld = 10,
};

constexpr size_t kMaxStatusText = 512;   // bytes; longer texts are cut
constexpr size_t kMaxLocated = 64;       // objects in one request
constexpr size_t kMaxLocatedText = 128;  // bytes of each one's status
constexpr size_t kMaxWatched = 512;      // begun, and ended, by one request

// Longest poll, to notice a dead server.
constexpr base::Duration kPollTurn = base::Seconds(20);

// A session of watches: an asker's only session is that with the highest number.
struct SessionName {
  uint64_t asker = 0;  // drawn at random
  uint64_t number = 0;
};

struct WatchRequest {
  uint64_t number = 0;  // in the session; a later one replaces it
  base::ObjectId id;
  bool pulls = false;  // enter the request's puller as coming
  bool once = false;   // answer at once, in any case
};

struct WatchResult {
  uint64_t number = 0;
  absl::StatusOr<LocatedObject> object;
};

base::Writer BeginRequest(RequestKind kind);

// `node` must pass CheckNode.
void WriteNode(base::Writer& writer, const NodeInfo& node);
NodeInfo ReadNode(base::Reader& reader);

void WriteRosterEntry(base::Writer& writer, const RosterEntry& entry);
// Returns false if it is no valid entry.
bool ReadRosterEntry(base::Reader& reader, RosterEntry* entry);

void WriteVersion(base::Writer& writer, const base::ObjectVersion& version);
base::ObjectVersion ReadVersion(base::Reader& reader);

void WriteUpdate(base::Writer& writer, const Update& update);
// Returns false if it is no valid update.
bool ReadUpdate(base::Reader& reader, Update* update);

// `id`: the object read, or null if no longer wanted. Another's name counts as none.
void WriteObject(base::Writer& writer, const LocatedObject& object);
LocatedObject ReadObject(base::Reader& reader, const base::ObjectId* id);

// Contents lie in `reader`'s bytes; `id` as above; MalformedReply if no honest server sends this.
void WriteLocated(base::Writer& writer, const absl::StatusOr<LocatedObject>& object);
absl::StatusOr<LocatedObject> ReadLocated(base::Reader& reader, const base::ObjectId* id);

inline bool IsFound(const LocatedObject& object) {
  return object.generation != base::kNoGeneration && !object.holders.empty();
}

void WriteNames(base::Writer& writer, absl::Span<const NodeId> names);
std::vector<NodeId> ReadNames(base::Reader& reader);

void WriteSession(base::Writer& writer, const SessionName& session);
SessionName ReadSession(base::Reader& reader);

void WriteWatch(base::Writer& writer, const WatchRequest& watch);
// Returns false if it is no valid watch.
bool ReadWatch(base::Reader& reader, WatchRequest* watch);

// `most_text`: bytes.
void WriteStatus(base::Writer& writer, const absl::Status& status, size_t most_text = kMaxStatusText);
// kUnavailable also if there is no status.
absl::Status ReadStatus(base::Reader& reader);

// No honest server sends it.
absl::Status MalformedReply();

}  // namespace tokamak::directory
