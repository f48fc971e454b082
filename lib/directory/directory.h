// Directory knows who holds what and who is alive: object -> generation, sizes and holders; node ->
// addresses and lease.
//
// docs/consistency.md is its contract with the nodes. In short:
// - An id has one generation at a time, the first that is announced. Another is refused
//   (kAlreadyExists) until the first has been deleted and every node that may hold it has dropped
//   it.
// - A deleted generation never comes back: a node that announces it gets kAborted, and drops its
//   copy.
// - Every node that may hold a copy is known: a node that locates an object in order to pull it is
//   entered as coming, before it has a byte. Only holders that have the object are named to others.
// - Liveness is a lease. A node whose lease has ended is silent: named to nobody, but still counted
//   among those that may hold its copies, until it is back, or its grace is over as well (then it
//   refuses gets itself) and it is gone.
//
// Implementations: local.h (pure state), remote/remote.h (another node's local one, over the
// transport), redis/redis_directory.h. All pass tests/directory/conformance.
//
// Every call returns a handle (lib/base/handle.h): dropping it cancels the call, and its wait at
// the server. Calls take effect in the order in which they are made, except that Delete and Roster,
// which programs ask for, may be queued and overtaken by later calls. Deadlines count from the
// call.
// Errors of every call: kDeadlineExceeded and kUnavailable (the directory is out of reach; it may
// or may not have acted).
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

// A node's name in the cluster: at most kMaxNodeName bytes of [A-Za-z0-9._:-].
using NodeId = std::string;
constexpr size_t kMaxNodeName = 64;
constexpr size_t kMaxHoldersNamed = 64;  // in one answer; any number is kept
constexpr size_t kMaxEngines = 16;
constexpr size_t kMaxAddressText = 64;  // bytes of an engine's address
constexpr size_t kMaxDeviceText = 256;
constexpr size_t kMaxNodes = 4096;        // alive or silent at once; further ones are refused (kResourceExhausted)
constexpr size_t kMaxUpdates = 64;        // in one Update
constexpr size_t kMaxVerified = 256;      // in one Verify
constexpr size_t kHeldPage = 256;         // versions in one answer to Held, or some more
constexpr size_t kMaxHeldCursor = 64;     // bytes of HeldReply::next
constexpr size_t kMaxDropsTold = 64;      // in one JoinReply
constexpr size_t kMaxBrought = 4096;      // bytes of an object that a LocatedObject may bring
constexpr size_t kMaxMark = 64;           // bytes of JoinReply::mark, and of as_of
constexpr size_t kMaxTombstones = 65536;  // deleted generations that are remembered when nobody holds them any more

// kInvalidArgument: the text names the mistake.
absl::Status CheckNodeId(const NodeId& node);

struct NodeInfo {
  NodeId id;
  uint64_t incarnation = 0;          // number of this life: a restarted node has a higher one
  std::vector<std::string> engines;  // where each engine's transport listens: "10.0.0.1:7000"
  std::string device;                // "soft:udp@127.0.0.1", for people
  uint64_t capacity = 0;             // bytes
};

// kInvalidArgument: the text names the broken bound.
absl::Status CheckNode(const NodeInfo& node);

// A node's standing with the directory; one that is gone is not known any more.
enum class Liveness : uint8_t { kAlive = 0, kSilent = 1 };

struct RosterEntry {
  NodeInfo node;
  Liveness liveness = Liveness::kAlive;
  base::Duration unheard_for;  // since it joined or last renewed its lease
};

// kUnavailable, from a directory that cannot know yet who holds what: it began `ago`, and will have
// learnt it after `left`; or `node` has not announced all.
absl::Status HasJustBegun(base::Duration ago, base::Duration left);
absl::Status HasNotToldAll(const NodeId& node);
// kAborted, for an outdated node.
absl::Status MayHaveBeenDeleted();
// kFailedPrecondition, for an announcement that was long on its way.
absl::Status SaidTooLongAgo();

// The machine that a request comes from: its IP address, as verbs::Address has it; zeros: this one.
using Host = std::array<uint8_t, 16>;

struct JoinRequest {
  NodeInfo node;
  base::Duration lease;  // time from now for which it is alive
  // Time after the lease for which it is silent. After that it serves no gets, not even its own
  // programs'.
  base::Duration grace;
  // True if it was in a directory before, in this life, and may hold older objects than this one
  // knows.
  bool returning = false;
  // True if everything that it holds has been announced, or located for pulling. False after a Join
  // without an answer: the node cannot know whether this directory has just entered it.
  bool complete = false;
  // JoinReply::mark of the last reply.
  std::string mark = {};
  // Not part of the request: filled in by the node that serves the directory.
  Host host = {};
};

struct JoinReply {
  // True if this life of the node was unknown (a restart): announce all objects.
  bool entered = false;
  // Deleted, and not yet confirmed by this node: drop these and withdraw them. At most
  // kMaxDropsTold; join again for more.
  std::vector<base::ObjectVersion> drops;
  // The last deletion up to which this node knows them, for the next Join. Opaque, at most kMaxMark
  // bytes.
  std::string mark;
  // The deletion that ended last, known to this node or not, for each Update. Opaque, at most
  // kMaxMark bytes.
  std::string as_of;
  // True if the node was gone while more was deleted than is remembered. Until it is complete, its
  // established announcements are refused (kAborted) unless the directory knows them. May become
  // true while the node is announcing.
  bool outdated = false;
};

// Whether a directory may have accepted an announced content, as far as the node knows.
enum class Standing : uint8_t {
  kNew = 0,          // none has: nobody else has a copy
  kEstablished = 1,  // one has
  kUnanswered = 2,   // announced without an answer: one may have, and others may have copies
};

// A node's report about one object that it holds, or no longer holds.
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
  base::ObjectName name = {};          // kAnnounce; empty if the node knows none
};

// In the order of the updates.
using UpdateStatuses = absl::InlinedVector<absl::Status, 1>;

struct LocatedObject {
  base::Generation generation = base::kNoGeneration;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  std::vector<NodeId> holders;  // alive, and have it; at most kMaxHoldersNamed

  // Data and then metadata, from the first of `holders`, if LocateRequest::may_bring and the answer
  // brings them; else empty: to be pulled. Valid during the callback.
  absl::Span<const uint8_t> contents = {};

  base::ObjectName name = {};  // from the announcement of a holder
};

// True if an answer may bring the object.
inline bool IsSmallEnoughToBring(uint64_t data_size, uint64_t metadata_size) {
  return data_size <= kMaxBrought && metadata_size <= kMaxBrought - data_size;
}

struct LocateRequest {
  base::ObjectId id;
  base::Duration wait;      // for a holder to appear, zero: asks once; then kNotFound
  base::Duration deadline;  // of the whole call: longer than `wait`
  NodeId puller;            // the node that is going to pull it, entered as coming; or empty
  // True if, with a puller, the answer may bring an object of at most kMaxBrought bytes, which
  // spares the pull.
  bool may_bring = false;
};

// One step of deleting an object: see Delete.
struct DeleteRequest {
  base::ObjectId id;
  base::Generation generation = base::kNoGeneration;  // only this one; none: whichever there is
  std::vector<NodeId> dropped;  // have confirmed since the last step that they do not hold `generation`
  NodeId after;                 // only holders after this name: earlier ones were asked without success
};

struct DeleteReply {
  base::Generation generation = base::kNoGeneration;
  // Holders that are alive and must drop it, by name, at most kMaxHoldersNamed. Empty: no more.
  std::vector<NodeId> holders;
  // Nodes that may hold it, but cannot be asked now; at most kMaxHoldersNamed.
  std::vector<NodeId> silent;
};

// A page of the objects that a node holds according to the directory: see Held.
struct HeldReply {
  std::vector<base::ObjectVersion> versions;
  std::string next;  // where the next page begins; empty: this was the last
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
  // kAlreadyExists: the name is taken, another life is alive at other addresses. A higher
  // incarnation at the same addresses replaces the lower one, which cannot live any more, and
  // forgets what that held. A Join that fails may have been carried out, and `entered` is reported
  // once: after a Join without an answer, the node must take the next one for entered, whatever it
  // reports.
  [[nodiscard]] virtual base::Pending Join(const JoinRequest& request, base::Duration deadline, JoinCallback done) = 0;

  // Ends the node's life here at once: it serves nobody any more, its own programs included.
  [[nodiscard]] virtual base::Pending Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline,
                                            StatusCallback done) = 0;

  // Reports, in order, objects that `node` holds now or no longer holds; at most kMaxUpdates.
  // `as_of` comes from the last JoinReply. Returns a status for each. Errors of an announcement:
  // kAlreadyExists (another generation has the id, or is being deleted: drop this one), kAborted
  // (this generation was deleted, or may have been while the node was gone: drop it), kUnavailable
  // (established, and another is being deleted: announce it again later), kResourceExhausted (the
  // same, for want of room), kFailedPrecondition (deletions since `as_of` have been forgotten in
  // part, perhaps this generation's: join, and announce it again), kInvalidArgument (known with
  // other sizes). If the node has no lease, all fail with kNotFound: join first. An established
  // generation displaces one that was accepted while the directory had yet to learn what is older
  // (after a restart, or while a node came back): the other is deleted. A withdrawal without a
  // generation withdraws the node if it is coming, but not if it has the object: for a node that
  // asked in order to pull and got no answer.
  [[nodiscard]] virtual base::Pending Update(const NodeId& node, absl::string_view as_of,
                                             absl::Span<const directory::Update> updates, base::Duration deadline,
                                             UpdateCallback done) = 0;

  // Returns the holders of `id`. Waits for one to appear, if requested. kNotFound: no holder.
  // kFailedPrecondition: the puller has no lease, join first. Never names a deleted generation.
  [[nodiscard]] virtual base::Pending Locate(const LocateRequest& request, LocateCallback done) = 0;

  // Deletes an object, in steps. After the first answer, the object cannot be located nor its
  // generation announced; then every holder must drop it. The caller asks `holders` to, calls again
  // with those that confirmed (`dropped`) and the last name that it was given (`after`), until
  // `holders` is empty; then, with `after` empty, once more: an answer without holders and without
  // silent ones means that no node holds it any more, and that the id is free. If an earlier
  // content of the id is being deleted as well, the answers go on with that one, which has another
  // generation, once this one is deleted. kNotFound: neither this generation nor a deletion of it
  // that is still under way is known. kUnavailable: there may be a holder that the directory does
  // not know: it has just begun, or a node that came back has not announced all yet.
  [[nodiscard]] virtual base::Pending Delete(const DeleteRequest& request, base::Duration deadline,
                                             DeleteCallback done) = 0;

  // Returns the places in `versions` (at most kMaxVerified) of those that the directory does not
  // know this node to hold, though it may: lost by a server that evicts, say.
  [[nodiscard]] virtual base::Pending Verify(const NodeId& node, absl::Span<const base::ObjectVersion> versions,
                                             base::Duration deadline, VerifyCallback done) = 0;

  // Returns a page of the objects that the node has, or is coming to, according to the directory:
  // the first page if `after` is empty, else the one at `next`, opaque, of the page before. A page
  // may be empty and not the last, and may repeat entries. An entry that lasts from the first page
  // to the last is named.
  [[nodiscard]] virtual base::Pending Held(const NodeId& node, const std::string& after, base::Duration deadline,
                                           HeldCallback done) = 0;

  // Returns the latest life of each name that is alive or silent, by id.
  [[nodiscard]] virtual base::Pending Roster(base::Duration deadline, RosterCallback done) = 0;

  // Returns the nodes of the roster that are alive.
  [[nodiscard]] base::Pending Nodes(base::Duration deadline, NodesCallback done);
};

}  // namespace tokamak::directory
