// Directory knows who holds what and who is alive: object -> generation, sizes and holders; node ->
// addresses and lease.
//
// docs/consistency.md is the contract that it keeps with the nodes. In short:
// - An id has one generation at a time. The first that is announced is the one; another is refused
//   (kAlreadyExists) until the first has been deleted and every node that may hold it has dropped
//   it.
// - A deleted generation never comes back: whoever announces it is told kAborted, and drops its
//   copy.
// - Every node that may hold a copy is known: who locates an object in order to pull it is entered
//   as coming, before it has a byte. Only holders that have the object are named to others.
// - Liveness is a lease. A node whose lease has ended is silent: named to nobody, but still counted
//   among those that may hold its copies, until it is back, or its grace is over as well (then it
//   refuses gets itself) and it is gone.
//
// Implementations: local.h (pure state), remote.h (another node's local one, asked over the
// transport), redis.h. All pass tests/directory/conformance.
//
// Every call returns a handle (lib/base/handle.h): dropping it cancels the call, at the server as
// well where it waits there. Calls take effect in the order in which they are made; but Delete and
// Roster, which programs ask for, may wait for their turn and be overtaken by later calls. Deadlines
// count from the call.
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
constexpr size_t kHeldPage = 256;         // versions that one answer to Held names, or some more
constexpr size_t kMaxHeldCursor = 64;     // bytes of where that goes on
constexpr size_t kMaxDropsTold = 64;      // in one JoinReply
constexpr size_t kMaxBrought = 4096;      // bytes of an object that come with the word where it is
constexpr size_t kMaxMark = 64;           // bytes of JoinReply::mark, and of as_of
constexpr size_t kMaxTombstones = 65536;  // deleted generations that are remembered when nobody holds them any more

// kInvalidArgument says what is wrong with a name.
absl::Status CheckNodeId(const NodeId& node);

struct NodeInfo {
  NodeId id;
  uint64_t incarnation = 0;          // which of its lives: a restarted node has a higher one
  std::vector<std::string> engines;  // where each engine's transport listens: "10.0.0.1:7000"
  std::string device;                // "soft:udp@127.0.0.1", for people
  uint64_t capacity = 0;             // bytes
};

// kInvalidArgument says which bound it breaks.
absl::Status CheckNode(const NodeInfo& node);

// How a node stands with the directory; one that is gone is not known any more.
enum class Liveness : uint8_t { kAlive = 0, kSilent = 1 };

// A node that the directory counts with.
struct RosterEntry {
  NodeInfo node;
  Liveness liveness = Liveness::kAlive;
  base::Duration unheard_for;  // since it joined, or renewed its lease
};

// What a directory says (kUnavailable) that cannot know yet who holds what: it began this long ago,
// and will have learnt it after `left`; or this node has not told all.
absl::Status HasJustBegun(base::Duration ago, base::Duration left);
absl::Status HasNotToldAll(const NodeId& node);
// To a node that is outdated: kAborted.
absl::Status MayHaveBeenDeleted();
// Of an announcement that was long on its way: kFailedPrecondition.
absl::Status SaidTooLongAgo();

// Which machine a request comes from: its IP address, as verbs::Address has it; zeros: this one.
using Host = std::array<uint8_t, 16>;

struct JoinRequest {
  NodeInfo node;
  base::Duration lease;  // alive for this long from now
  // Then silent for this long. Longer than that a silent node serves no gets, not even its own
  // programs'.
  base::Duration grace;
  // It was in a directory before, in this life: its objects may be older than what this directory
  // knows.
  bool returning = false;
  // Everything that it holds has been announced, or located for pulling. Not of a node that cannot
  // know whether this directory has just entered it: a Join before this one was not answered.
  bool complete = false;
  // What the last reply said.
  std::string mark = {};
  // Filled in by the node that serves the directory: no part of the request.
  Host host = {};
};

struct JoinReply {
  // This directory did not know this life of the node (a restart): announce everything that is
  // held.
  bool entered = false;
  // Deleted, and not yet confirmed by this node: drop these and withdraw them. At most
  // kMaxDropsTold; join again for more.
  std::vector<base::ObjectVersion> drops;
  // Up to which deletion this node knows them: to be said with the next Join. Only the directory
  // can read it; at most kMaxMark bytes.
  std::string mark;
  // The deletion that ended last, whether this node knows of it or not: to be said with each
  // Update. As `mark` to read, and as long.
  std::string as_of;
  // The node was gone while more was deleted than is remembered. Until it is complete, what it
  // announces as established is refused (kAborted) unless the directory knows it. It may become so
  // while it is telling.
  bool outdated = false;
};

// Whether a directory may have accepted what a node announces, as far as that node knows.
enum class Standing : uint8_t {
  kNew = 0,          // none has: nobody else has a copy
  kEstablished = 1,  // one has
  kUnanswered = 2,   // it was announced, and no answer came: one may have, and others may have copies
};

// A word of a node about one object that it holds, or no longer holds.
struct Update {
  enum class Kind : uint8_t {
    kAnnounce = 1,  // it is here, sealed
    kWithdraw = 2,  // it is not here, nor coming
  };
  Kind kind = Kind::kAnnounce;
  base::ObjectVersion version;
  uint64_t data_size = 0;  // kAnnounce
  uint64_t metadata_size = 0;
  Standing standing = Standing::kNew;  // kAnnounce
  base::ObjectName name = {};          // kAnnounce; none where the node knows none
};

// What is answered to each update, in their order.
using UpdateStatuses = absl::InlinedVector<absl::Status, 1>;

// Where an object is.
struct LocatedObject {
  base::Generation generation = base::kNoGeneration;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  std::vector<NodeId> holders;  // alive, and have it; at most kMaxHoldersNamed of them

  // Of an answer that brings them (LocateRequest::may_bring): data and then metadata, from the
  // first of `holders`. Valid while that is told. Empty: to be pulled.
  absl::Span<const uint8_t> contents = {};

  base::ObjectName name = {};  // that a holder announced it with
};

// In an answer that brings it.
inline bool IsSmallEnoughToBring(uint64_t data_size, uint64_t metadata_size) {
  return data_size <= kMaxBrought && metadata_size <= kMaxBrought - data_size;
}

struct LocateRequest {
  base::ObjectId id;
  base::Duration wait;      // for somebody to hold it, zero: asks once; then kNotFound
  base::Duration deadline;  // of the whole call: longer than `wait`
  NodeId puller;            // not empty: this node is going to pull it, and is entered as coming
  // With a puller: the answer may bring an object of at most kMaxBrought bytes, which spares the
  // pull.
  bool may_bring = false;
};

// One step of deleting an object: see Delete.
struct DeleteRequest {
  base::ObjectId id;
  base::Generation generation = base::kNoGeneration;  // only this one; none: whichever there is
  std::vector<NodeId> dropped;  // have confirmed since the last step that they do not hold `generation`
  NodeId after;                 // holders after this name only: those before were asked without success
};

struct DeleteReply {
  base::Generation generation = base::kNoGeneration;
  // Alive: to be told to drop it; by name, at most kMaxHoldersNamed of them. Empty: no more.
  std::vector<NodeId> holders;
  // May hold it, and cannot be asked now; at most kMaxHoldersNamed of them.
  std::vector<NodeId> silent;
};

// A page of what the directory takes a node to hold: see Held.
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
  // kAlreadyExists: another life is alive at other addresses: the name is taken. A higher
  // incarnation at the same addresses replaces the lower one, which cannot live any more, and
  // forgets what that held. One that fails may have been carried out, and `entered` is said once:
  // whoever gets no answer takes the next one for entered, whatever it says.
  [[nodiscard]] virtual base::Pending Join(const JoinRequest& request, base::Duration deadline, JoinCallback done) = 0;

  // Ends the node's life here at once: it serves nobody any more, its own programs included.
  [[nodiscard]] virtual base::Pending Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline,
                                            StatusCallback done) = 0;

  // What `node` holds now and what it does not hold any more, in order; at most kMaxUpdates.
  // `as_of`: what the last JoinReply said. A status for each. Of an announcement: kAlreadyExists
  // (another generation has the id, or is being deleted: drop this one), kAborted (this generation
  // was deleted, or may have been while the node was gone: drop it), kUnavailable (established, and
  // another is being deleted: say it again later), kResourceExhausted (the same, for want of room),
  // kFailedPrecondition (what was deleted since `as_of` has been forgotten in part, this generation
  // perhaps: join, and say it again), kInvalidArgument (known with other sizes). Where the node has
  // no lease all fail with kNotFound: join first. An established generation that meets one that was
  // accepted while the directory had yet to learn what is older (it had been restarted, or a node
  // came back) displaces it: the other is deleted. A withdrawal without a generation withdraws the
  // node where it is coming, but not what it has: for one that asked in order to pull and heard no
  // answer.
  [[nodiscard]] virtual base::Pending Update(const NodeId& node, absl::string_view as_of,
                                             absl::Span<const directory::Update> updates, base::Duration deadline,
                                             UpdateCallback done) = 0;

  // Who holds `id`. Waits for somebody to do, where asked to. kNotFound: nobody does.
  // kFailedPrecondition: the puller has no lease, join first. Never names a deleted generation.
  [[nodiscard]] virtual base::Pending Locate(const LocateRequest& request, LocateCallback done) = 0;

  // From the answer on the object is located by nobody and its generation announced by nobody; then
  // every holder must be told. The caller tells `holders`, calls again with those that confirmed
  // (`dropped`) and the last name that it was given (`after`), until `holders` is empty; then, with
  // `after` empty, once more: an answer without holders and without silent ones means that no node
  // holds it any more, and that the id is free. Where another content that had the id before is
  // being deleted as well, the answer goes on with that once this one is deleted: it has another
  // generation. kNotFound: neither this generation nor a deletion
  // of it that is still under way is known. kUnavailable: it may be held by somebody of whom the
  // directory does not know that: it has just begun, or a node that came back has not told all yet.
  [[nodiscard]] virtual base::Pending Delete(const DeleteRequest& request, base::Duration deadline,
                                             DeleteCallback done) = 0;

  // Which of `versions` (by place; at most kMaxVerified) the directory does not know this node to
  // hold, though it may: lost by a server that evicts, say.
  [[nodiscard]] virtual base::Pending Verify(const NodeId& node, absl::Span<const base::ObjectVersion> versions,
                                             base::Duration deadline, VerifyCallback done) = 0;

  // The other way round: what the directory takes this node to have, or to be coming to. A page of
  // it, the first one where `after` is empty, then what `next` of the page before says; it is
  // opaque. A page may be empty and not the last, and may name what another has named. What is so
  // from the first page to the last is named.
  [[nodiscard]] virtual base::Pending Held(const NodeId& node, const std::string& after, base::Duration deadline,
                                           HeldCallback done) = 0;

  // All nodes that are alive or silent, by id: of each name its latest life.
  [[nodiscard]] virtual base::Pending Roster(base::Duration deadline, RosterCallback done) = 0;

  // Of these those that are alive.
  [[nodiscard]] base::Pending Nodes(base::Duration deadline, NodesCallback done);
};

}  // namespace tokamak::directory
