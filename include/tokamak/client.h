// Client is how a program uses Tokamak: it puts objects into its node's store and gets them, from
// whichever node has them.
//
//   #include "tokamak/client.h"
//
//   tokamak::Result<tokamak::Client> client = tokamak::Client::Connect("/run/tokamak.sock");
//   client->Put(tokamak::ObjectId::FromName("greeting"), bytes);
//   tokamak::Result<tokamak::Buffer> buffer =
//       client->Get(tokamak::ObjectId::FromName("greeting"), std::chrono::seconds(5));
//   Use(buffer->data());   // in place, in shared memory; valid while `buffer` lives
//
// Every call may block, and ends by its time-out, or by ClientOptions::call_timeout where it takes
// none. A call that waits for objects is given call_timeout beyond its time-out for the daemon to
// answer. Sizes are in bytes.
// A waiting call can be interrupted, by another thread or a signal handler: interrupt.h.
// Thread rule: any thread, any number at once. A Client may be moved only while nobody calls it;
// one that was moved from may only be dropped or assigned to.
// Fork rule: what a process made is its own. A child of fork() may drop it, of which the daemon
// does not hear, and read its buffers for as long as the parent keeps them; its calls fail with
// kFailedPrecondition. It connects anew, or its first call does (ClientOptions::reconnect).
// Reconnecting: with ClientOptions::reconnect a client outlives its daemon; docs/library.md says
// what becomes of calls, buffers, gets and subscriptions.
//
// Errors of every call: kUnavailable (no daemon, or the connection is gone: for good, connect
// again, unless this client does), kDeadlineExceeded, kCancelled (interrupted), and what the daemon
// says: kNotFound, kAlreadyExists, kResourceExhausted, kFailedPrecondition, kInvalidArgument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokamak/buffer.h"
#include "tokamak/object_id.h"
#include "tokamak/span.h"
#include "tokamak/status.h"
#include "tokamak/subscription.h"
#include "tokamak/timeout.h"
#include "tokamak/types.h"

namespace tokamak {

// The library's own.
namespace client {
class Line;
}  // namespace client

class Client final {
 public:
  // Objects of one Wait.
  static constexpr size_t kMaxWaited = 2048;

  // Connects to the daemon that listens at `socket_path`.
  static Result<Client> Connect(const std::string& socket_path, const ClientOptions& options = {});

  Client(Client&&) = default;
  Client& operator=(Client&&) = default;

  // ---- putting ----

  // A new object to be filled in place and sealed. `metadata` is written already.
  Result<MutableBuffer> Create(const ObjectId& id, uint64_t data_size, Span<const uint8_t> metadata = {},
                               const PutOptions& options = {});

  // Creates, copies and seals. Up to PutOptions::kSmall take one message, more take two and the
  // copy.
  Status Put(const ObjectId& id, Span<const uint8_t> data, Span<const uint8_t> metadata = {},
             const PutOptions& options = {});

  // Puts many, the small ones together in few messages; each succeeds or fails alone, answers in
  // order. PutOptions::name counts for those that have none of their own.
  std::vector<Status> Put(Span<const PutObject> objects, const PutOptions& options = {});

  // All or none: they appear together, or the status says why none did. At most PutOptions::kSmall
  // with all metadata, and kMaxTogether objects: kInvalidArgument. Does not wait for room, and is
  // not confirmed: where another content has the id of one of them elsewhere in the cluster, that
  // one alone is dropped later, as after an unconfirmed put.
  Status PutTogether(Span<const PutObject> objects);
  static constexpr size_t kMaxTogether = 2048;

  // ---- getting ----

  // The object, from here or from another node, waiting up to `timeout` for one that does not exist
  // yet. After it: kNotFound (no node holds it) or kDeadlineExceeded (it did not arrive in time;
  // the text says what was in its way).
  Result<Buffer> Get(const ObjectId& id, Timeout timeout, const GetOptions& options = {});

  // Many under way at once, each answered as it comes, polled and cancelled: Gets, in gets.h.

  // Many at once: answers when all are here, or at `timeout` with those that are. As many as `ids`,
  // in their order.
  std::vector<Result<Buffer>> Get(Span<const ObjectId> ids, Timeout timeout, const GetOptions& options = {});

  // Brings objects to this node, as Get does, and hands them to nobody: later gets find them here,
  // unless they were evicted. As many answers as `ids`, in their order.
  std::vector<Status> Prefetch(Span<const ObjectId> ids, Timeout timeout);

  // The same, and none of them is evicted from this node from then on, whether it is a copy or was
  // put here. That is this node's alone, belongs to no client, and outlives this one; Unpin ends
  // it, by whichever program, and so do the object's deletion and the daemon's end. Once pinned it
  // stays so, however often it is pinned: one Unpin is enough. No quota counts it.
  std::vector<Status> Pin(Span<const ObjectId> ids, Timeout timeout);
  // OK also where the object is here and was not pinned. kNotFound: it is not here.
  Status Unpin(const ObjectId& id);

  // Has the node of that name, which Nodes lists, bring objects to itself from whoever has them; it
  // gives them to no program. Answered when they are there, or at `timeout`: as many as `ids`, in
  // their order. kNotFound: of all of them, there is no such node; of one, no node holds it.
  // kInvalidArgument: it is this client's own node, where Prefetch does the same.
  std::vector<Status> Push(Span<const ObjectId> ids, const std::string& node, Timeout timeout);

  // Waits until `count` of at most kMaxWaited objects exist, on this node or anywhere, or until
  // `timeout`. Says which do. Nothing is moved.
  Result<std::vector<bool>> Wait(Span<const ObjectId> ids, size_t count, Timeout timeout,
                                 const WaitOptions& options = {});

  // ---- looking, all on this node ----

  Result<bool> Contains(const ObjectId& id);

  // At most `limit` objects in any state, by id; `after` continues where an earlier list ended.
  Result<std::vector<ObjectInfo>> List(size_t limit = SIZE_MAX, const std::optional<ObjectId>& after = std::nullopt);

  // How an object is on this node, and which nodes hold it. kNotFound: no node does.
  Result<ObjectStat> Stat(const ObjectId& id);

  // Progress of an object that is on its way here, for a get of any program or a Prefetch. Asks
  // only this node. The moved bytes may become fewer, when another holder has to begin anew.
  // kNotFound: it is not on its way; it may be here already.
  Result<PullProgress> Progress(const ObjectId& id);

  // XXH64 of data and metadata of an object on this node.
  Result<uint64_t> Hash(const ObjectId& id);

  // Subscribes to what is sealed, deleted and evicted from now on.
  Result<Subscription> Subscribe(const SubscribeOptions& options = {});

  // ---- managing ----

  // Deletes the object on all nodes: no Get that begins after OK returns it, on any node; who reads
  // it already goes on reading. kNotFound: no node has it. kUnavailable: the directory is away
  // (nothing was deleted), or a node that may hold a copy is; that copy is dropped when the node is
  // back.
  Status Delete(const ObjectId& id);

  // The rest is about this node alone.

  // Uses an object without reading it, so that others are evicted before it.
  Status Touch(const ObjectId& id);

  // Evicts at least `bytes`, or all that may be evicted.
  Result<Evicted> Evict(uint64_t bytes);

  // ---- the cluster ----

  Result<std::vector<NodeInfo>> Nodes();
  Result<tokamak::NodeStats> NodeStats();

  // All nodes with their states and what each says of itself, whichever node is asked. Takes some
  // two seconds where one does not answer.
  Result<ClusterView> Cluster();

  // Its name, and what objects of the node may take together. After a restart: as the daemon has
  // said to the last connection. The text lives as long as the client.
  const std::string& node() const;
  uint64_t capacity() const;

  // OK while connected; afterwards why not, also when nobody calls. Lost once, a connection stays
  // lost; where this client reconnects the next call makes another. Never waits.
  Status status() const;

 private:
  friend class Gets;
  explicit Client(std::shared_ptr<client::Line> line) : line_(std::move(line)) {}

  Status PutLarge(const PutObject& object, const PutOptions& options);
  void PutSmall(Span<const PutObject> objects, const std::vector<size_t>& which, const PutOptions& options,
                std::vector<Status>& statuses);
  std::vector<Result<Buffer>> GetSome(Span<const ObjectId> ids, Timeout timeout, const GetOptions& options);
  std::vector<Status> Bring(Span<const ObjectId> ids, Timeout timeout, bool pin);

  std::shared_ptr<client::Line> line_;
};

}  // namespace tokamak
