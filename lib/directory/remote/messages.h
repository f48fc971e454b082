// The requests and replies of the remote directory, as bytes (docs/directory.md has them in one
// picture).
//
//   request   kind 1 | kind's fields
//   reply     status 1 | text | kind's fields where the status is ok
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
  kLocate = 4,  // some objects, at once
  kDelete = 5,
  kVerify = 6,
  kRoster = 7,
  kWatch = 8,  // begins and ends waits for objects
  kPoll = 9,   // held until one of them appears
  kHeld = 10,
};

constexpr size_t kMaxStatusText = 512;   // bytes; longer texts are cut
constexpr size_t kMaxLocated = 64;       // objects that one request asks for
constexpr size_t kMaxLocatedText = 128;  // bytes of each one's status
constexpr size_t kMaxWatched = 512;      // watches that one request begins, and that it ends

// A poll is held for at most this long, so that a server that is gone is noticed.
constexpr base::Duration kPollTurn = base::Seconds(20);

// Which watches a request is about: one asker has one session at a time, the one with the highest
// number.
struct SessionName {
  uint64_t asker = 0;  // drawn
  uint64_t number = 0;
};

// An object that somebody waits for.
struct WatchRequest {
  uint64_t number = 0;  // unique in its session; a later one with the same number takes its place
  base::ObjectId id;
  bool pulls = false;  // the puller that the request names is to be entered
  bool once = false;   // to be answered at once, whatever the answer is
};

// What became of a watch.
struct WatchResult {
  uint64_t number = 0;
  absl::StatusOr<LocatedObject> object;
};

base::Writer BeginRequest(RequestKind kind);

// Of a node that CheckNode finds in order.
void WriteNode(base::Writer& writer, const NodeInfo& node);
NodeInfo ReadNode(base::Reader& reader);

void WriteRosterEntry(base::Writer& writer, const RosterEntry& entry);
// False: no such entry.
bool ReadRosterEntry(base::Reader& reader, RosterEntry* entry);

void WriteVersion(base::Writer& writer, const base::ObjectVersion& version);
base::ObjectVersion ReadVersion(base::Reader& reader);

void WriteUpdate(base::Writer& writer, const Update& update);
// False: no such update.
bool ReadUpdate(base::Reader& reader, Update* update);

// Reading: the object `id`, or null where nobody asks any more. A name that is not its own counts as
// none.
void WriteObject(base::Writer& writer, const LocatedObject& object);
LocatedObject ReadObject(base::Reader& reader, const base::ObjectId* id);

// The answer to one Locate: an object, and what is brought of it. Reading: its contents are in
// `reader`'s bytes, `id` as above; MalformedReply where no honest server says this.
void WriteLocated(base::Writer& writer, const absl::StatusOr<LocatedObject>& object);
absl::StatusOr<LocatedObject> ReadLocated(base::Reader& reader, const base::ObjectId* id);

// Names a content and a holder, as an object that was found does.
inline bool IsFound(const LocatedObject& object) {
  return object.generation != base::kNoGeneration && !object.holders.empty();
}

void WriteNames(base::Writer& writer, absl::Span<const NodeId> names);
std::vector<NodeId> ReadNames(base::Reader& reader);

void WriteSession(base::Writer& writer, const SessionName& session);
SessionName ReadSession(base::Reader& reader);

void WriteWatch(base::Writer& writer, const WatchRequest& watch);
// False: no such watch.
bool ReadWatch(base::Reader& reader, WatchRequest* watch);

// At most `most_text` bytes of its text.
void WriteStatus(base::Writer& writer, const absl::Status& status, size_t most_text = kMaxStatusText);
// kUnavailable also where there is no status.
absl::Status ReadStatus(base::Reader& reader);

// A reply that no honest server sends.
absl::Status MalformedReply();

}  // namespace tokamak::directory
