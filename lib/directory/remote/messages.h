// The requests and replies of the remote directory, as bytes (drawn in docs/directory.md).
//
//   request   kind 1 | kind's fields
//   reply     status 1 | text | kind's fields if the status is OK
//
// All of it is untrusted on both sides. Integers are little-endian; texts have a 32-bit length
// before them, lists a 32-bit count.
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
constexpr size_t kMaxWatched = 512;      // watches that one request begins, and that it ends

// The longest time for which a poll is held, so that a dead server is noticed.
constexpr base::Duration kPollTurn = base::Seconds(20);

// Names a session of watches: an asker has one at a time, the one with the highest number.
struct SessionName {
  uint64_t asker = 0;  // drawn at random
  uint64_t number = 0;
};

struct WatchRequest {
  uint64_t number = 0;  // unique in its session; a later one with the same number takes its place
  base::ObjectId id;
  bool pulls = false;  // true if the request's puller is to be entered as coming
  bool once = false;   // true if to be answered at once, in any case
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

// Read: the object `id`, or null if it is no longer wanted. A name that is not its own counts as
// none.
void WriteObject(base::Writer& writer, const LocatedObject& object);
LocatedObject ReadObject(base::Reader& reader, const base::ObjectId* id);

// The answer to one Locate: an object, perhaps with its contents. Reading: the contents lie in
// `reader`'s bytes, `id` as above; MalformedReply if no honest server sends this.
void WriteLocated(base::Writer& writer, const absl::StatusOr<LocatedObject>& object);
absl::StatusOr<LocatedObject> ReadLocated(base::Reader& reader, const base::ObjectId* id);

// True if it names a content and a holder, as an object that was found does.
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

// Writes at most `most_text` bytes of its text.
void WriteStatus(base::Writer& writer, const absl::Status& status, size_t most_text = kMaxStatusText);
// kUnavailable also if there is no status.
absl::Status ReadStatus(base::Reader& reader);

// A reply that no honest server sends.
absl::Status MalformedReply();

}  // namespace tokamak::directory
