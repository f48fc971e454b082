// Directory knows who holds what and who is alive: object -> generation, sizes and holders; node ->
// addresses and lease.
//
// docs/consistency.md is its contract with the nodes. An id has one generation at a time, and a
// deleted one never comes back. Every node that may hold a copy is known: one that locates an
// object to pull it is entered as coming, before it has a byte. A node whose lease has ended is
// silent, still a holder but named to nobody, until it is back, or its grace is over as well and it
// is gone.
//
// Implementations: local.h, remote/remote.h, redis/redis_directory.h. All pass
// tests/directory/conformance.
//
// Every call returns a handle (lib/base/handle.h): dropping it cancels the call, and its wait at
// the server. Calls take effect in the order made, except that Delete and Roster, which programs
// ask for, may be overtaken. Deadlines count from the call. Errors of every call: kDeadlineExceeded
// and kUnavailable (out of reach; the directory may have acted).
// Thread rule: one loop, the node's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/base/object_id.h"
#include "lib/base/text/object_name.h"
#include "lib/base/time.h"

namespace tokamak::directory {

// At most kMaxNodeName bytes of [A-Za-z0-9._:-].
using NodeId = std::string;
constexpr size_t kMaxNodeName = 64;
constexpr size_t kMaxHoldersNamed = 64;  // in one answer
constexpr size_t kMaxEngines = 16;
constexpr size_t kMaxAddressText = 64;  // bytes
constexpr size_t kMaxDeviceText = 256;
constexpr size_t kMaxNodes = 4096;        // alive or silent; further ones: kResourceExhausted
constexpr size_t kMaxUpdates = 64;        // in one Update
constexpr size_t kMaxVerified = 256;      // in one Verify
constexpr size_t kHeldPage = 256;         // versions in an answer, or some more
constexpr size_t kMaxHeldCursor = 64;     // bytes of HeldReply::next
constexpr size_t kMaxDropsTold = 64;      // in one JoinReply
constexpr size_t kMaxBrought = 4096;      // bytes of an object in a LocatedObject
constexpr size_t kMaxMark = 64;           // bytes of JoinReply::mark, and of as_of
constexpr size_t kMaxTombstones = 65536;  // deletions remembered when nobody holds the generation

// kInvalidArgument: the text names the mistake.
absl::Status CheckNodeId(const NodeId& node);

struct NodeInfo {
  NodeId id;
  uint64_t incarnation = 0;          // number of this life; rises
  std::vector<std::string> engines;  // of the engines' transports: "10.0.0.1:7000"
  std::string device;                // "soft:udp@127.0.0.1", for people
  uint64_t capacity = 0;             // bytes
};

// kInvalidArgument: the text names the broken bound.
absl::Status CheckNode(const NodeInfo& node);

enum class Liveness : uint8_t { kAlive = 0, kSilent = 1 };

struct RosterEntry {
  NodeInfo node;
  Liveness liveness = Liveness::kAlive;
  base::Duration unheard_for;  // since it joined or renewed its lease
};

// kUnavailable, of a directory that cannot know yet who holds what: it began `ago`, and has `left`
// to learn it; or `node` has not announced all.
absl::Status HasJustBegun(base::Duration ago, base::Duration left);
absl::Status HasNotToldAll(const NodeId& node);
// kAborted, for an outdated node.
absl::Status MayHaveBeenDeleted();
// kFailedPrecondition, for an announcement that was long on its way.
absl::Status SaidTooLongAgo();

// IP address of a request, as in verbs::Address; zeros: this machine.
using Host = std::array<uint8_t, 16>;

struct JoinRequest {
  NodeInfo node;
  base::Duration lease;  // from now
  // Silence after the lease; then it serves no gets, not even its own programs'.
  base::Duration grace;
  // True if it was in a directory before, in this life.
  bool returning = false;
  // True if everything that it holds has been announced, or located for pulling. False after a Join
  // without an answer: the directory may have just entered it.
  bool complete = false;
  // JoinReply::mark of the last reply.
  std::string mark = {};
  // Filled in by the serving node.
  Host host = {};
};

struct JoinReply {
  // True if this life was unknown: announce all objects.
  bool entered = false;
  // Deleted, and not yet confirmed by this node: drop and withdraw these. At most kMaxDropsTold;
  // join again for more.
  std::vector<base::ObjectVersion> drops;
  // Last deletion up to which this node knows them, for the next Join. Opaque.
  std::string mark;
  // Last deletion that ended, for each Update. Opaque.
  std::string as_of;
  // True if the node was gone while more was deleted than is remembered. Until it is complete, its
  // established announcements are refused (kAborted) unless known. May become true later.
  bool outdated = false;
};

// Whether a directory may have accepted a content, as far as the node knows.
enum class Standing : uint8_t {
  kNew = 0,          // none: nobody else has a copy
  kEstablished = 1,  // one has
  kUnanswered = 2,   // one may have, and others may have copies
};

// A node's report about one object.
struct Update {
  enum class Kind : uint8_t {
    kAnnounce = 1,  // it is here, sealed
    kWithdraw = 2,  // it is neither here nor coming
  };
  Kind kind = Kind::kAnnounce;
  base::ObjectVersion version;
  uint64_t data_size = 0;  // kAnnounce
  uint64_t metadata_size = 0;
  Standing standing = Standing::kNew;  // kAnnounce
  base::ObjectName name = {};          // kAnnounce; may be empty
};

// In the order of the updates.
using UpdateStatuses = absl::InlinedVector<absl::Status, 1>;

struct LocatedObject {
  base::Generation generation = base::kNoGeneration;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  std::vector<NodeId> holders;  // alive, and have it

  // Data, then metadata, from the first of `holders`, if brought (LocateRequest::may_bring). Valid
  // during the callback.
  absl::Span<const uint8_t> contents = {};

  base::ObjectName name = {};  // of a holder's announcement
};

inline bool IsSmallEnoughToBring(uint64_t data_size, uint64_t metadata_size) {
  return data_size <= kMaxBrought && metadata_size <= kMaxBrought - data_size;
}

struct LocateRequest {
  base::ObjectId id;
  base::Duration wait;      // for a holder to appear; zero: asks once; then kNotFound
  base::Duration deadline;  // of the whole call: longer than `wait`
  NodeId puller;            // entered as coming; or empty
  // True if, with a puller, the answer may bring an object of at most kMaxBrought bytes.
  bool may_bring = false;
};

struct DeleteRequest {
  base::ObjectId id;
  base::Generation generation = base::kNoGeneration;  // only this one; none: any
  std::vector<NodeId> dropped;  // confirmed since the last step that they do not hold `generation`
  NodeId after;                 // only holders after this name, as earlier ones were asked; empty: all
};

struct DeleteReply {
  base::Generation generation = base::kNoGeneration;
  // Alive; must drop it. By name, at most kMaxHoldersNamed. Empty: no more.
  std::vector<NodeId> holders;
  // May hold it; cannot be asked now. At most kMaxHoldersNamed.
  std::vector<NodeId> silent;
};

struct HeldReply {
  std::vector<base::ObjectVersion> versions;
  std::string next;  // cursor; empty: this was the last
};

class Directory {
 public:
  using StatusCallback = std::function<void(absl::Status)>;
  using JoinCallback = std::function<void(absl::StatusOr<JoinReply>)>;
  using UpdateCallback = std::function<void(absl::StatusOr<UpdateStatuses>)>;
  using LocateCallback = std::function<void(absl::StatusOr<LocatedObject>)>;
  using DeleteCallback = std::function<void(absl::StatusOr<DeleteReply>)>;
  using VerifyCallback = std::function<void(absl::StatusOr<std::vector<uint32_t>>)>;
  using HeldCallback = std::function<void(absl::StatusOr<HeldReply>)>;
  using RosterCallback = std::function<void(absl::StatusOr<std::vector<RosterEntry>>)>;
  using NodesCallback = std::function<void(absl::StatusOr<std::vector<NodeInfo>>)>;

  virtual ~Directory() = default;

  // Enters or renews this node. kFailedPrecondition: a later life of the node is known.
  // kAlreadyExists: another life is alive at other addresses; at the same ones a higher incarnation
  // replaces it and its objects. A Join that fails may have been carried out, and `entered` is
  // reported once: after a Join without an answer, the node must take the next one for entered.
  [[nodiscard]] virtual base::Pending Join(const JoinRequest& request, base::Duration deadline, JoinCallback done) = 0;

  // Ends the node's life at once: it serves nobody any more, its own programs included.
  [[nodiscard]] virtual base::Pending Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline,
                                            StatusCallback done) = 0;

  // Reports, in order, objects that `node` holds or no longer holds; at most kMaxUpdates. `as_of`:
  // of the last JoinReply. Returns a status for each; all kNotFound if the node has no lease: join
  // first. Errors of an announcement: kAlreadyExists (another generation has the id, or is being
  // deleted: drop this one), kAborted (this generation was deleted, or may have been while the node
  // was gone: drop it), kUnavailable (established, and another is being deleted: again later),
  // kResourceExhausted (no room: again later), kFailedPrecondition (deletions since `as_of` have
  // been forgotten: join, and announce it again), kInvalidArgument (known with other sizes). An
  // established generation displaces one that was accepted while the directory had yet to learn
  // what is older: the other is deleted. A withdrawal without a generation withdraws a coming node,
  // but none that has the object.
  [[nodiscard]] virtual base::Pending Update(const NodeId& node, absl::string_view as_of,
                                             absl::Span<const directory::Update> updates, base::Duration deadline,
                                             UpdateCallback done) = 0;

  // Returns the holders of `id`, never of a deleted generation; may wait for one. kNotFound: no
  // holder. kFailedPrecondition: the puller has no lease, join first.
  [[nodiscard]] virtual base::Pending Locate(const LocateRequest& request, LocateCallback done) = 0;

  // Deletes an object, in steps. After the first answer, the object cannot be located nor its
  // generation announced. The caller asks `holders` to drop it, calls again with those that
  // confirmed (`dropped`) and the last name that it was given (`after`), until `holders` is empty;
  // then once more with `after` empty: an answer with neither holders nor silent ones frees the id.
  // If an earlier content of the id is being deleted as well, the answers then go on with that
  // generation. kNotFound: neither this generation nor a deletion of it under way is known.
  // kUnavailable: there may be an unknown holder: the directory has just begun, or a node that came
  // back has not announced all.
  [[nodiscard]] virtual base::Pending Delete(const DeleteRequest& request, base::Duration deadline,
                                             DeleteCallback done) = 0;

  // Returns the places in `versions` (at most kMaxVerified) of those that the directory does not
  // know this node to hold: evicted by its server, say.
  [[nodiscard]] virtual base::Pending Verify(const NodeId& node, absl::Span<const base::ObjectVersion> versions,
                                             base::Duration deadline, VerifyCallback done) = 0;

  // Returns a page of the objects that the node has, or is coming to: the first, or the one at
  // `after`, an earlier page's `next`. A page may be empty and not the last, and may repeat
  // entries. An entry that lasts from the first page to the last is named.
  [[nodiscard]] virtual base::Pending Held(const NodeId& node, const std::string& after, base::Duration deadline,
                                           HeldCallback done) = 0;

  // Returns the latest life of each name, alive or silent, by id.
  [[nodiscard]] virtual base::Pending Roster(base::Duration deadline, RosterCallback done) = 0;

  [[nodiscard]] base::Pending Nodes(base::Duration deadline, NodesCallback done);
};

}  // namespace tokamak::directory
