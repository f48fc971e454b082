// Session is one client of the daemon: it turns the frames of its connection into calls of the
// node, and answers them.
//
// It knows nothing of sockets: the ClientServer (client_server.h) feeds it frames and takes what it
// sends. A client is untrusted in its form (a malformed frame ends the connection) and bounded in
// what it may have under way; what it holds, pins and unsealed objects, goes back when the session
// ends, unless Leave gave it to somebody else.
// Thread rule: the control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/byte_budget.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/trace.h"
#include "lib/client/protocol/frame.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/event_feed.h"
#include "lib/daemon/metrics/node_snapshot.h"
#include "lib/node/node.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

// Requests of one client that wait for an answer; further ones are refused (kResourceExhausted).
constexpr size_t kMaxWaitingRequests = 4096;
constexpr size_t kMaxWaitingIds = 65536;  // objects that all of these are about, together
// What they take of the program's memory, together with the bytes that are put as soon as there is
// room: somewhat more than is measured.
constexpr uint64_t kRequestMemory = 1024;
constexpr uint64_t kIdMemory = 256;
// Objects of which nobody knows a holder, and that the programs of a node wait for together. The
// rest of what a node may wait for in its directory is left to what other nodes have it bring. One
// program waits for at most as many as are free for others: so nobody has them all.
constexpr size_t kMaxLookedFor = 49152;

// What all connections of one program have under way together.
struct ProgramShare {
  // `most`: bytes; of `user`, who may have several programs.
  explicit ProgramShare(uint64_t most, base::ByteBudget* user = nullptr) : memory(most, user) {}

  base::ByteBudget memory;
  size_t waiting_ids = 0;  // objects that requests which wait are about
};

// What a client may ask about the daemon that no node knows.
struct SessionContext {
  base::EventLoop& loop;
  node::Node& node;
  uint64_t arena_size = 0;
  std::string device;
  std::function<NodeSnapshot()> snapshot;  // of now, for NodeStats
  // Is told of each get from its request to its end; null: nobody is.
  base::Trace* trace = nullptr;
  mutable uint64_t gets_traced = 0;
  // Objects that Wait has the directory watch, for all sessions.
  mutable size_t watched = 0;
};

// What a session sends. The first frame of a welcome takes the arena's descriptors along.
enum class Descriptors : uint8_t { kNone, kRead, kReadAndCreate };

class Session final {
 public:
  using Send = std::function<void(std::vector<uint8_t> frame, Descriptors descriptors)>;

  // `context` must outlive it. `program` names the client where memory is accounted for. `send` may
  // drop what it cannot deliver. `congested`: whether the client is so far behind that events are
  // left out; answers never are. `share`: of the program; outlives it (null: it is the only one,
  // and may have us hold any amount).
  Session(const SessionContext& context, const std::string& program, Send send, EventFeed::Congested congested,
          ProgramShare* share = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The client is gone, but the program may still write to what it did not seal: ends all requests,
  // and leaves what the client holds to the caller, who drops or abandons that owner. Nothing may
  // be handled after.
  store::Owner Leave();

  // A whole frame from the client. An error means that the client broke the protocol: end the
  // connection.
  absl::Status Handle(absl::Span<const uint8_t> frame);

  // It said hello.
  bool greeted() const { return greeted_; }

 private:
  // One request that is answered later. Lives until then, or until the session ends: with its
  // handles what it waits for is cancelled.
  struct Waiting {
    client::Header header;
    base::ByteClaim memory;
    size_t ids = 0;
    size_t watched = 0;  // of SessionContext::watched
    base::Pending handle;
    std::vector<base::Pending> handles;  // of requests about many objects
    client::StatReply stat;
    client::WaitReply wait;
    client::CreateAndSealReply sealed;
    client::PrefetchReply prefetched;
    bool confirmed = false;
    absl::Status trouble;  // of a question that had no answer
    uint32_t ready = 0;
    uint32_t unanswered = 0;
    uint64_t activity = 0;          // for the trace; 0: is not traced
    std::unique_ptr<Waiting> self;  // while it is on the list
    base::Link<Waiting> link;
  };

  absl::Status Dispatch(const client::Header& header, absl::Span<const uint8_t> frame);
  void Greet(const client::Header& header, const client::HelloRequest& request);
  void Create(const client::Header& header, const client::CreateRequest& request);
  void Reserve(const client::Header& header, const store::CreateRequest& create, base::Duration timeout);
  void FillLater(Waiting& waiting, size_t place, const store::SmallObject& object, base::Time deadline);
  void ConfirmSealed(Waiting& waiting, size_t place, const base::ObjectVersion& version);
  void EndOne(Waiting& waiting);
  void CreateAndSeal(const client::Header& header, const client::CreateAndSealRequest& request);
  void Seal(const client::Header& header, const client::SealRequest& request);
  void Get(const client::Header& header, const client::GetRequest& request);
  void Prefetch(const client::Header& header, const client::PrefetchRequest& request);
  void Push(const client::Header& header, const client::PushRequest& request);
  void Cancel(const client::Header& header, const client::CancelRequest& request);
  void Release(const client::Header& header, const client::ReleaseRequest& request);
  void Delete(const client::Header& header, const client::DeleteRequest& request);
  void List(const client::Header& header, const client::ListRequest& request);
  void Stat(const client::Header& header, const client::StatRequest& request);
  void Progress(const client::Header& header, const client::ProgressRequest& request);
  void Evict(const client::Header& header, const client::EvictRequest& request);
  void Hash(const client::Header& header, const client::HashRequest& request);
  void Wait(const client::Header& header, const client::WaitRequest& request);
  void WaitAnywhere(const client::Header& header, const client::WaitRequest& request);
  void Subscribe(const client::Header& header, const client::SubscribeRequest& request);
  void Nodes(const client::Header& header);
  void NodeStats(const client::Header& header);
  void Cluster(const client::Header& header, const client::ClusterRequest& request);

  template <typename Reply>
  void Answer(const client::Header& header, const Reply& reply);
  void AnswerStatus(const client::Header& header, const absl::Status& status);

  // Whether one more request can wait, and `bytes` with it; the error is for the client.
  absl::Status CheckBegin(size_t ids, uint64_t bytes) const;
  // The same; where it cannot, that was answered.
  bool MayBegin(const client::Header& header, size_t ids = 1, uint64_t bytes = 0);
  // Whether it may wait, for `timeout` microseconds, for those that are not here; where not, that
  // was answered.
  bool MayLookFor(const client::Header& header, absl::Span<const base::ObjectId> ids, uint64_t timeout);

  // Registers a request that is answered later; nullptr when there are too many, which was
  // answered.
  Waiting* Begin(const client::Header& header, size_t ids = 1, uint64_t bytes = 0);
  void End(Waiting* waiting);
  void Record(base::Phase phase, const Waiting& waiting) const;

  const SessionContext& context_;
  store::Store& store_;
  const Send send_;
  const store::Owner owner_;
  ProgramShare* const share_;
  bool left_ = false;
  bool greeted_ = false;
  bool read_only_ = false;
  size_t waiting_ids_ = 0;
  base::IntrusiveList<Waiting, &Waiting::link> waiting_;
  EventFeed feed_;
};

}  // namespace tokamak::daemon
