// Client is how a program uses Tokamak: it puts objects into its node's store and gets them, from
// whichever node has them.
//
//   absl::StatusOr<Client> client = Client::Connect("/run/tokamak.sock");
//   client->Put(ObjectId::FromName("greeting"), bytes);
//   absl::StatusOr<Buffer> buffer = client->Get(ObjectId::FromName("greeting"), base::Seconds(5));
//   Use(buffer->data());   // in place, in shared memory; valid while `buffer` lives
//
// Every call may block, and ends by its time-out, or by ClientOptions::call_timeout where it takes
// none. A call that waits for objects is given call_timeout beyond its time-out for the daemon to
// answer. Sizes are in bytes; time-outs beyond a day are a day.
// Thread rule: any thread, any number at once. A Client may be moved only while nobody calls it.
// Not across fork().
//
// Errors of every call: kUnavailable (no daemon, or the connection is gone for good: connect
// again), kDeadlineExceeded, and what the daemon says: kNotFound, kAlreadyExists,
// kResourceExhausted, kFailedPrecondition, kInvalidArgument.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/client/buffer.h"
#include "lib/client/messages.h"
#include "lib/client/protocol.h"

namespace tokamak::client {

struct ClientOptions {
  base::Duration call_timeout = base::Seconds(10);

  // A client with Access::kRead cannot write into the arena by mistake: Create and a Put of more
  // than kMaxInlineBytes fail.
  Access access = Access::kReadAndCreate;

  // Who waits for an answer looks for it for this long before it sleeps. That saves a wake-up where
  // this thread and the daemon have a processor each, and costs processor time. None: a moment
  // (kSpin) where this thread may run on kSpinningProcessors or more.
  static constexpr base::Duration kSpin = base::Microseconds(30);
  static constexpr size_t kSpinningProcessors = 8;
  absl::optional<base::Duration> spin;

  // For the daemon's log.
  std::string name = "client";
};

// How an object is put.
struct PutOptions {
  // Wait this long for room, if there is none: until objects are released, deleted or evicted. Then
  // kResourceExhausted.
  base::Duration timeout = base::Seconds(5);

  // OK means that the id was free, and that this content is the one of its id in the whole cluster:
  // the call waits for the directory's word. Otherwise kAlreadyExists, or kUnavailable (the
  // directory is away), and nothing is stored. Without it OK means that the object is on this node;
  // if its id is taken elsewhere it is dropped when the directory says so.
  bool confirmed = false;

  // Of Create: takes the id and the room at once, so that what stands against them is known before
  // anything is filled. Without it a small object, of at most kMaxInlineBytes with its metadata, is
  // filled in memory of this program, and Seal puts it in one message: half the time, but what
  // Create would have refused, Seal does, and waits for room. Larger ones are always claimed.
  bool claim = true;
};

// An object to be put; its bytes are only read during the call.
using PutObject = InlineObject;

class Subscription;

class Client final {
 public:
  // Connects to the daemon that listens at `socket_path`.
  static absl::StatusOr<Client> Connect(const std::string& socket_path, const ClientOptions& options = {});

  Client(Client&&) = default;
  Client& operator=(Client&&) = default;

  // ---- putting ----

  // A new object to be filled in place and sealed. `metadata` is written already.
  absl::StatusOr<MutableBuffer> Create(const base::ObjectId& id, uint64_t data_size,
                                       absl::Span<const uint8_t> metadata = {}, const PutOptions& options = {});

  // Creates, copies and seals. Up to kMaxInlineBytes take one message, more take two and the copy.
  absl::Status Put(const base::ObjectId& id, absl::Span<const uint8_t> data, absl::Span<const uint8_t> metadata = {},
                   const PutOptions& options = {});

  // Puts many, the small ones together in few messages; each succeeds or fails alone, answers in
  // order.
  std::vector<absl::Status> Put(absl::Span<const PutObject> objects, const PutOptions& options = {});

  // ---- getting ----

  // The object, from here or from another node, waiting up to `timeout` for one that does not exist
  // yet. After it: kNotFound (no node holds it) or kDeadlineExceeded (it did not arrive in time;
  // the text says what was in its way).
  absl::StatusOr<Buffer> Get(const base::ObjectId& id, base::Duration timeout, Protocol protocol = Protocol::kAuto);

  // Many under way at once, each answered as it comes, polled and cancelled: Gets, in gets.h.

  // Many at once: answers when all are here, or at `timeout` with those that are. As many as `ids`,
  // in their order.
  std::vector<absl::StatusOr<Buffer>> Get(absl::Span<const base::ObjectId> ids, base::Duration timeout,
                                          Protocol protocol = Protocol::kAuto);

  // Waits until `count` of at most kMaxIds objects exist, on this node or anywhere, or until
  // `timeout`. Says which do.
  absl::StatusOr<std::vector<bool>> Wait(absl::Span<const base::ObjectId> ids, size_t count, base::Duration timeout,
                                         Scope scope = Scope::kAnywhere);

  // ---- looking, all on this node ----

  absl::StatusOr<bool> Contains(const base::ObjectId& id);

  // At most `limit` objects in any state, by id; `after` continues where an earlier list ended.
  absl::StatusOr<std::vector<ObjectEntry>> List(size_t limit = SIZE_MAX,
                                                const absl::optional<base::ObjectId>& after = absl::nullopt);

  // How an object is on this node, and which nodes hold it. kNotFound: no node does.
  absl::StatusOr<StatReply> Stat(const base::ObjectId& id);

  // XXH64 of data and metadata of an object on this node.
  absl::StatusOr<uint64_t> Hash(const base::ObjectId& id);

  // What is sealed, deleted and evicted from now on.
  absl::StatusOr<Subscription> Subscribe();

  // ---- managing ----

  // Deletes the object on all nodes: no Get that begins after OK returns it, on any node; who reads
  // it already goes on reading. kNotFound: no node has it. kUnavailable: the directory is away
  // (nothing was deleted), or a node that may hold a copy is; that copy is dropped when the node is
  // back.
  absl::Status Delete(const base::ObjectId& id);

  // The rest is about this node alone.

  // Uses an object without reading it, so that others are evicted before it.
  absl::Status Touch(const base::ObjectId& id);

  // Evicts at least `bytes`, or all that may be evicted.
  absl::StatusOr<EvictReply> Evict(uint64_t bytes);

  // ---- the cluster ----

  absl::StatusOr<std::vector<NodeEntry>> Nodes();
  absl::StatusOr<NodeStatsReply> NodeStats();

  const std::string& node() const;
  uint64_t capacity() const;

  // OK while connected; afterwards why not, also when nobody calls. Lost once, a connection stays
  // lost. Never waits.
  absl::Status status() const;

 private:
  friend class Gets;
  Client(std::string socket_path, ClientOptions options, std::shared_ptr<Connection> connection);

  template <typename R>
  absl::StatusOr<typename R::Reply> CallAbout(const base::ObjectId& id);
  std::vector<absl::StatusOr<Buffer>> GetSome(absl::Span<const base::ObjectId> ids, base::Duration timeout,
                                              Protocol protocol);
  static absl::StatusOr<Buffer> BufferOf(const std::shared_ptr<Connection>& connection, const base::ObjectId& id,
                                         const GetEntry& entry);
  // What gives back all that a reply brought for which nobody waits; empty: nothing.
  static std::vector<uint8_t> ReleaseOf(absl::Span<const base::ObjectId> asked, absl::Span<const uint8_t> late);
  absl::Status PutLarge(const PutObject& object, const PutOptions& options);
  void PutSmall(absl::Span<const PutObject> objects, absl::Span<const size_t> which, const PutOptions& options,
                std::vector<absl::Status>& statuses);

  std::string socket_path_;
  ClientOptions options_;
  std::shared_ptr<Connection> connection_;
};

// Hears of one node's objects, over a connection of its own. Thread rule: one thread. Dropping it
// unsubscribes.
class Subscription final {
 public:
  Subscription(Subscription&&) = default;
  Subscription& operator=(Subscription&&) = default;

  // What happened since the last call, in order, waiting up to `timeout` for something to happen
  // (kDeadlineExceeded). A subscriber that is too slow loses events: `dropped` says how many,
  // before the ones that it gets.
  absl::StatusOr<EventsNotification> Next(base::Duration timeout);

 private:
  friend class Client;
  explicit Subscription(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  std::shared_ptr<Connection> connection_;
};

}  // namespace tokamak::client
