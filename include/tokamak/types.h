// Arguments and results of a client's calls, beside ids, bytes and buffers: plain structs and
// enums.
//
// Sizes are in bytes. Fields may be added with a release: name those that you set. The numbers of
// enums stay as they are; a later daemon may know more of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokamak/interrupt.h"
#include "tokamak/object_id.h"
#include "tokamak/span.h"
#include "tokamak/timeout.h"

namespace tokamak {

// ---- options

// A client's rights to the shared memory.
enum class Access : uint8_t { kRead = 0, kReadAndCreate = 1 };

struct ClientOptions {
  // Longest time for calls that take no time-out of their own; for those that do, the time beyond
  // it for the daemon to answer.
  Timeout call_timeout = std::chrono::seconds(10);

  // With Access::kRead this client cannot write into objects by mistake, and creates none.
  Access access = Access::kReadAndCreate;

  // Who waits for an answer looks for it for this long before it sleeps. That saves a wake-up where
  // this thread and the daemon have a processor each, and costs processor time. None: a moment
  // (kSpin) where this thread may run on kSpinningProcessors or more.
  static constexpr std::chrono::microseconds kSpin{30};
  static constexpr size_t kSpinningProcessors = 8;
  std::optional<std::chrono::nanoseconds> spin;

  // For the daemon's log. At most 128 bytes count.
  std::string name = "client";

  // The most bytes that this client may hold, in objects that it has not sealed and in buffers that
  // it reads: a create or a get beyond it fails with kResourceExhausted. Zero: no bound beside that
  // which tokd --quota sets for all clients of a program together.
  uint64_t quota = 0;

  // When the connection is lost, as the daemon was restarted, the next call connects anew, also in
  // a child of fork(): within its time-out, and at most ten times a second. A call that was sent
  // and not answered ends with kUnavailable ("not answered: ..."): it may have been carried out,
  // and is not made again. Without it the connection is lost for good.
  bool reconnect = false;
};

// How an object is put.
struct PutOptions {
  // Wait this long for room, if there is none: until objects are released, deleted or evicted. Then
  // kResourceExhausted, which says who holds the memory.
  Timeout timeout = std::chrono::seconds(5);

  // OK means that the id was free, and that this content is the one of its id in the whole cluster:
  // the call waits for the directory's word. Otherwise kAlreadyExists, or kUnavailable (the
  // directory is away), and nothing is stored. Without it OK means that the object is on this node;
  // if its id is taken elsewhere it is dropped when the directory says so, and an event says so
  // too.
  bool confirmed = false;

  // For Create: takes the id and the room at once, so that errors about them are known before
  // anything is filled. Without it a small object, of at most kSmall with its metadata, is filled
  // in memory of this program, and Seal puts it in one message: half the time, but Seal instead of
  // Create waits for room and returns the errors. Larger ones are always claimed.
  bool claim = true;
  static constexpr size_t kSmall = 64 * 1024;

  // Ends Create and Put with kCancelled when it is fired while they wait. The object that Create
  // would have made is dropped; a small Put may still be carried out.
  const Interrupt* interrupt = nullptr;

  // The name that the id was made of (ObjectId::FromName). It is kept with the object, on each node
  // that has a copy, and shown wherever objects are listed. Empty: the object is shown by its id.
  // kInvalidArgument where it is not the id's, or MayBeKept says no.
  std::string name;
  static constexpr size_t kMaxName = 255;  // bytes

  // Whether a name can be kept: UTF-8 without control characters, of 1 to kMaxName bytes.
  static bool MayBeKept(std::string_view name);
};

// The protocol that moves the bytes of an object from another node. kAuto: the best for its size.
enum class Protocol : uint8_t { kAuto = 0, kEager = 1, kRead = 2, kWrite = 3 };

struct GetOptions {
  // For measuring; the holder may choose kEager instead.
  Protocol protocol = Protocol::kAuto;

  // Ends Client::Get with kCancelled when it is fired while that waits, here and at the daemon.
  // Gets have their own ways: Cancel, and the interrupt of Next.
  const Interrupt* interrupt = nullptr;
};

// Where an object is waited for.
enum class Scope : uint8_t { kLocal = 0, kAnywhere = 1 };

struct WaitOptions {
  Scope scope = Scope::kAnywhere;

  // Ends it with kCancelled when it is fired meanwhile, here and at the daemon.
  const Interrupt* interrupt = nullptr;
};

struct SubscribeOptions {
  // Objects that are sealed already come first, each once, as if it were sealed now; events of them
  // meanwhile come behind that.
  bool existing = false;
};

// ---- objects

// An object to be put; its bytes and its name are only read during the call.
struct PutObject {
  ObjectId id;
  Span<const uint8_t> data;
  Span<const uint8_t> metadata;
  std::string_view name = {};  // as PutOptions::name
};

enum class ObjectState : uint8_t {
  kCreated = 0,  // not sealed yet: only its creator sees its bytes
  kSealed = 1,
  kEvicted = 2,  // gone, but for those who hold it
  kDeleted = 3,  // the same
  kAborted = 4,
};

enum class Origin : uint8_t {
  kCreatedHere = 0,  // put on this node: kept until it is deleted
  kPulled = 1,       // a copy of another node's: evicted where room is needed
};

// An object as it is on one node.
struct ObjectInfo {
  ObjectId id;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  uint64_t pins = 0;                // buffers that read it now, of all programs
  std::chrono::microseconds age{};  // since its creation on this node
  ObjectState state = ObjectState::kCreated;
  Origin origin = Origin::kCreatedHere;
  bool pinned_here = false;  // by Client::Pin; one of the pins
  std::string name;          // that it was put with; empty: none is kept
};

// An object in the cluster.
struct ObjectStat {
  bool here = false;     // `object` says how it is on this node; else only its id, sizes and name count
  bool located = false;  // the directory answered, and so `holders` are known
  ObjectInfo object;
  std::vector<std::string> holders;  // names of nodes, at most 64
};

// How far the move of an object to this node is, in bytes of data and metadata.
struct PullProgress {
  uint64_t moved = 0;
  uint64_t total = 0;  // 0: it is looked for, and nothing is moving yet
};

struct Evicted {
  uint64_t objects = 0;
  uint64_t bytes = 0;
};

// ---- nodes

struct NodeInfo {
  std::string name;
  std::string address;       // where its transport listens, for people
  std::string device;        // RDMA device, such as ibv:mlx5_0
  uint64_t incarnation = 0;  // another one each time that it was started
  uint64_t capacity = 0;     // of its store
  bool is_this = false;      // the node that answered
};

struct NodeNumber {
  std::string name;  // unit last: store_used_bytes; totals since the start end in _total
  uint64_t value = 0;
};

struct NodeStats {
  std::string node;
  std::string device;
  std::vector<NodeNumber> numbers;
};

enum class NodeState : uint8_t {
  kAlive = 0,
  kSuspected = 1,  // it did not answer
  kSilent = 2,     // the directory has not heard of it for its lease; it keeps its objects' ids for its grace
};

// A node as the others see it.
struct ViewedNode {
  NodeInfo info;
  NodeState state = NodeState::kAlive;
  std::chrono::microseconds unheard_for{0};  // since it answered, or the directory heard of it
  std::string page;                          // "10.0.0.1:9464", where it answers HTTP; empty: nowhere, or unknown
  std::vector<NodeNumber> numbers;           // some of NodeStats'; empty: it did not say
};

struct ClusterView {
  bool located = false;           // the directory answered; else these are the nodes that it named last
  std::vector<ViewedNode> nodes;  // by name
};

// ---- events

enum class EventKind : uint8_t {
  kSealed = 0,
  kDeleted = 1,
  kEvicted = 2,
  kRefused = 3,  // dropped: another content has its id in the cluster
};

// An event of an object on one node.
struct Event {
  EventKind kind = EventKind::kSealed;
  Origin origin = Origin::kCreatedHere;
  ObjectId id;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  std::string name;  // of the object, as in ObjectInfo
};

struct Events {
  uint64_t dropped = 0;  // left out before these, because the subscriber did not keep up
  // True if these events complete what existed, if SubscribeOptions::existing asked for that. There
  // may be no events beside it.
  bool caught_up = true;
  std::vector<Event> events;
};

}  // namespace tokamak
