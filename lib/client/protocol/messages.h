// The bodies of the client protocol: one struct each, in which Visit() lists the fields once, for
// both directions.
//
// A request names its kind and its reply, which may be an error instead. Bounds are protocol.h's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/object_id.h"
#include "lib/client/protocol/entries.h"
#include "lib/client/protocol/protocol.h"

namespace tokamak::client {

// A reply that is only a status.
template <Kind kind>
struct DoneReply {
  static constexpr uint16_t kKind = static_cast<uint16_t>(kind) | kReplyBit;
  template <typename M, typename V>
  static void Visit(M&, V&) {}
};

template <Kind kind>
struct Request {
  static constexpr uint16_t kKind = static_cast<uint16_t>(kind);
  using Reply = DoneReply<kind>;
};

template <Kind kind>
struct ReplyTo {
  static constexpr uint16_t kKind = static_cast<uint16_t>(kind) | kReplyBit;
};

// An outcome for each object of the request, in order.
template <Kind kind, size_t most>
struct OutcomesReply : ReplyTo<kind> {
  std::vector<Outcome> outcomes;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Parts(m.outcomes, most);
  }
};

template <Kind kind>
struct ObjectRequest : Request<kind> {
  base::ObjectId id;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Id(m.id);
  }
};

using AbortRequest = ObjectRequest<Kind::kAbort>;
using DeleteRequest = ObjectRequest<Kind::kDelete>;
using TouchRequest = ObjectRequest<Kind::kTouch>;
using UnpinRequest = ObjectRequest<Kind::kUnpin>;  // ends Prefetch's pin

// Confirmed: answered when the directory has accepted this content for its id; otherwise the object
// is gone.
struct SealRequest : Request<Kind::kSeal> {
  base::ObjectId id;
  bool confirmed = false;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Id(m.id);
    v.Bool(m.confirmed);
  }
};

// The arena's descriptors come beside it: the first is open for reading only; the second, sent for
// Access::kReadAndCreate alone, for reading and writing.
struct WelcomeReply : ReplyTo<Kind::kHello> {
  uint64_t arena_size = 0;  // bytes to map
  uint64_t capacity = 0;    // bytes that all objects may take together
  uint64_t incarnation = 0;
  std::string node;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Integer(m.arena_size);
    v.Integer(m.capacity);
    v.Integer(m.incarnation);
    v.Text(m.node, kMaxName);
  }
};
// The first frame of a connection. A header of another version is answered with FailedPrecondition.
struct HelloRequest : Request<Kind::kHello> {
  using Reply = WelcomeReply;
  Access access = Access::kReadAndCreate;
  std::string name;    // of the client, for logs
  uint64_t quota = 0;  // most bytes that it may hold, unsealed and pinned together; 0: no bound of its own
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Enum(m.access);
    v.Text(m.name, kMaxName);
    v.Integer(m.quota);
  }
};

struct CreateReply : ReplyTo<Kind::kCreate> {
  Location location;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Part(m.location);
  }
};
struct CreateRequest : Request<Kind::kCreate> {
  using Reply = CreateReply;
  base::ObjectId id;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  uint64_t timeout_microseconds = 0;  // longest wait for room
  bool confirmed = false;             // the directory is asked first whether the id is free
  std::string name;                   // kept with it; empty: none
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Id(m.id);
    v.Integer(m.data_size);
    v.Integer(m.metadata_size);
    v.Bounded(m.timeout_microseconds, kMaxTimeoutMicroseconds);
    v.Bool(m.confirmed);
    v.Text(m.name, kMaxObjectName);
  }
};

using CreateAndSealReply = OutcomesReply<Kind::kCreateAndSeal, kMaxIds>;
// Small objects, which the daemon copies into the arena: at most kMaxInlineBytes together, not
// counting names. If one has a name that is not its id's, none is put.
struct CreateAndSealRequest : Request<Kind::kCreateAndSeal> {
  using Reply = CreateAndSealReply;
  std::vector<InlineObject> objects;
  uint64_t timeout_microseconds = 0;  // longest wait for room, for all together
  bool confirmed = false;             // as in SealRequest, for each object
  // True: all or none, at once, not confirmed; an error gives the reason.
  bool together = false;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Parts(m.objects, kMaxIds);
    v.Bounded(m.timeout_microseconds, kMaxTimeoutMicroseconds);
    v.Bool(m.confirmed);
    v.Bool(m.together);
  }
};

// An object of a get: pinned for this connection if the outcome is OK.
struct GetEntry {
  Outcome outcome;
  Location location;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Part(m.outcome);
    v.Part(m.location);
  }
};
struct GetReply : ReplyTo<Kind::kGet> {
  std::vector<GetEntry> entries;  // one for each id, in order
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Parts(m.entries, kMaxIds);
  }
};
// Pulls absent objects, and waits for those that do not exist yet.
struct GetRequest : Request<Kind::kGet> {
  using Reply = GetReply;
  uint64_t timeout_microseconds = 0;
  Protocol protocol = Protocol::kAuto;
  std::vector<base::ObjectId> ids;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Bounded(m.timeout_microseconds, kMaxTimeoutMicroseconds);
    v.Enum(m.protocol);
    v.Ids(m.ids, kMaxIds);
  }
};

using PrefetchReply = OutcomesReply<Kind::kPrefetch, kMaxIds>;
// As Get, but pins the objects for nobody. With `pin` each stays on this node until an Unpin or its
// deletion, even after this connection.
struct PrefetchRequest : Request<Kind::kPrefetch> {
  using Reply = PrefetchReply;
  uint64_t timeout_microseconds = 0;
  bool pin = false;
  std::vector<base::ObjectId> ids;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Bounded(m.timeout_microseconds, kMaxTimeoutMicroseconds);
    v.Bool(m.pin);
    v.Ids(m.ids, kMaxIds);
  }
};

using PushReply = OutcomesReply<Kind::kPush, kMaxPushed>;
// Makes another node pull the objects.
struct PushRequest : Request<Kind::kPush> {
  using Reply = PushReply;
  uint64_t timeout_microseconds = 0;
  std::string node;  // its name
  std::vector<base::ObjectId> ids;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Bounded(m.timeout_microseconds, kMaxTimeoutMicroseconds);
    v.Text(m.node, kMaxName);
    v.Ids(m.ids, kMaxPushed);
  }
};

struct ProgressReply : ReplyTo<Kind::kProgress> {
  uint64_t moved = 0;  // bytes, with metadata
  uint64_t total = 0;  // 0: no byte is moving yet
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Integer(m.moved);
    v.Integer(m.total);
  }
};
// Progress of the pull of an object to this node. kNotFound: there is none.
struct ProgressRequest : ObjectRequest<Kind::kProgress> {
  using Reply = ProgressReply;
};

// Answers an unanswered Get or Wait with kCancelled.
struct CancelRequest : Request<Kind::kCancel> {
  uint64_t request_id = 0;  // the Get's or Wait's
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Integer(m.request_id);
  }
};

// Gives back one pin for each time that an id is listed.
struct ReleaseRequest : Request<Kind::kRelease> {
  std::vector<base::ObjectId> ids;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Ids(m.ids, kMaxIds);
  }
};

struct ContainsReply : ReplyTo<Kind::kContains> {
  bool here = false;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Bool(m.here);
  }
};
struct ContainsRequest : ObjectRequest<Kind::kContains> {
  using Reply = ContainsReply;
};

struct ListReply : ReplyTo<Kind::kList> {
  std::vector<ObjectEntry> objects;  // by id
  bool more = false;                 // continue after the last
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Parts(m.objects, kMaxListed);
    v.Bool(m.more);
  }
};
struct ListRequest : Request<Kind::kList> {
  using Reply = ListReply;
  uint32_t limit = kMaxListed;
  bool continued = false;  // from behind `after`; otherwise from the first
  base::ObjectId after;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Bounded(m.limit, uint32_t{kMaxListed});
    v.Bool(m.continued);
    v.Id(m.after);
  }
};

struct StatReply : ReplyTo<Kind::kStat> {
  bool here = false;     // `object` is its state here; otherwise only id, sizes and name count
  bool located = false;  // the directory answered
  ObjectEntry object;
  std::vector<std::string> holders;  // names of nodes
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Bool(m.here);
    v.Bool(m.located);
    v.Part(m.object);
    v.Texts(m.holders, kMaxHolders, kMaxName);
  }
};
struct StatRequest : ObjectRequest<Kind::kStat> {
  using Reply = StatReply;
};

struct EvictReply : ReplyTo<Kind::kEvict> {
  uint64_t objects = 0;
  uint64_t bytes = 0;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Integer(m.objects);
    v.Integer(m.bytes);
  }
};
struct EvictRequest : Request<Kind::kEvict> {
  using Reply = EvictReply;
  uint64_t bytes = 0;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Integer(m.bytes);
  }
};

struct HashReply : ReplyTo<Kind::kHash> {
  uint64_t hash = 0;  // XXH64, with metadata
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Integer(m.hash);
  }
};
struct HashRequest : ObjectRequest<Kind::kHash> {
  using Reply = HashReply;
};

struct WaitReply : ReplyTo<Kind::kWait> {
  std::vector<uint8_t> ready;  // 0 or 1 for each id, in order
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Flags(m.ready, kMaxIds);
  }
};
// Waits until `count` of the objects exist, here or anywhere. Pins and moves nothing.
struct WaitRequest : Request<Kind::kWait> {
  using Reply = WaitReply;
  uint64_t timeout_microseconds = 0;
  uint32_t count = 0;
  Scope scope = Scope::kLocal;
  std::vector<base::ObjectId> ids;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Bounded(m.timeout_microseconds, kMaxTimeoutMicroseconds);
    v.Bounded(m.count, uint32_t{kMaxIds});
    v.Enum(m.scope);
    v.Ids(m.ids, kMaxIds);
  }
};

// Events follow the reply, until the connection ends. With `existing` they begin with the sealed
// objects, each once, as if it were sealed now; further events keep their order meanwhile.
struct SubscribeRequest : Request<Kind::kSubscribe> {
  bool existing = false;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Bool(m.existing);
  }
};
struct EventsNotification {
  static constexpr uint16_t kKind = static_cast<uint16_t>(Kind::kEvents);
  uint64_t dropped = 0;  // events left out before these, as the client did not keep up
  // True if these events complete what existed at the Subscribe, if that was asked for.
  bool caught_up = true;
  std::vector<EventEntry> events;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Integer(m.dropped);
    v.Bool(m.caught_up);
    v.Parts(m.events, kMaxEvents);
  }
};

struct NodesReply : ReplyTo<Kind::kNodes> {
  std::vector<NodeEntry> nodes;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Parts(m.nodes, kMaxNodes);
  }
};
struct NodesRequest : Request<Kind::kNodes> {
  using Reply = NodesReply;
  template <typename M, typename V>
  static void Visit(M&, V&) {}
};

struct ClusterReply : ReplyTo<Kind::kCluster> {
  bool located = false;            // the directory answered; otherwise these are the nodes of its last answer
  std::vector<ViewedEntry> nodes;  // by name
  bool more = false;               // continue after the last
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Bool(m.located);
    v.Parts(m.nodes, kMaxViewed);
    v.Bool(m.more);
  }
};
// All nodes, each with its own numbers. Takes up to some two seconds if one does not answer.
struct ClusterRequest : Request<Kind::kCluster> {
  using Reply = ClusterReply;
  std::string after;  // a name: starts behind it; empty: with the first
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Text(m.after, kMaxName);
  }
};

struct NodeStatsReply : ReplyTo<Kind::kNodeStats> {
  std::string node;
  std::string device;  // that the daemon uses
  std::vector<NumberEntry> numbers;
  template <typename M, typename V>
  static void Visit(M& m, V& v) {
    v.Text(m.node, kMaxName);
    v.Text(m.device, kMaxName);
    v.Parts(m.numbers, kMaxNumbers);
  }
};
struct NodeStatsRequest : Request<Kind::kNodeStats> {
  using Reply = NodeStatsReply;
  template <typename M, typename V>
  static void Visit(M&, V&) {}
};

}  // namespace tokamak::client
