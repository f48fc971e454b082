// Session is one client of the daemon: it turns the frames of its connection into calls of the
// node, and answers them. Each request that is answered later is an object of its own (requests/).
//
// It knows nothing of sockets: the ClientServer (client_server.h) feeds it frames and takes what it
// sends. A client is untrusted in its form (a malformed frame ends the connection) and bounded in
// what it may have under way; what it holds, pins and unsealed objects, goes back when the session
// ends, unless Leave gave it to somebody else.
// Thread rule: the control loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/object_id.h"
#include "lib/client/protocol/messages.h"
#include "lib/daemon/clients/event_feed.h"
#include "lib/daemon/clients/program_share.h"
#include "lib/daemon/clients/requests/asker.h"
#include "lib/daemon/clients/requests/pending_request.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

// Requests of one client that wait for an answer; further ones are refused (kResourceExhausted).
constexpr size_t kMaxWaitingRequests = 4096;
constexpr size_t kMaxWaitingIds = 65536;  // objects that all of these are about, together
// Objects of which nobody knows a holder, and that the programs of a node wait for together. The
// rest of what a node may wait for in its directory is left to what other nodes have it bring. One
// program waits for at most as many as are free for others: so nobody has them all.
constexpr size_t kMaxLookedFor = 49152;

class Session final {
 public:
  using Send = Asker::Send;

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
  absl::Status Dispatch(const client::Header& header, absl::Span<const uint8_t> frame);
  void Greet(const client::Header& header, const client::HelloRequest& request);
  void Create(const client::Header& header, const client::CreateRequest& request);
  void CreateAndSeal(const client::Header& header, const client::CreateAndSealRequest& request);
  void Seal(const client::Header& header, const client::SealRequest& request);
  void Get(const client::Header& header, const client::GetRequest& request);
  void Prefetch(const client::Header& header, const client::PrefetchRequest& request);
  void Push(const client::Header& header, const client::PushRequest& request);
  void Cancel(const client::Header& header, const client::CancelRequest& request);
  void Release(const client::Header& header, const client::ReleaseRequest& request);
  void List(const client::Header& header, const client::ListRequest& request);
  void Progress(const client::Header& header, const client::ProgressRequest& request);
  void Evict(const client::Header& header, const client::EvictRequest& request);
  void Wait(const client::Header& header, const client::WaitRequest& request);
  void Subscribe(const client::Header& header, const client::SubscribeRequest& request);
  void NodeStats(const client::Header& header);

  // Returns whether one more request can wait; the error is for the client.
  absl::Status CheckBegin(const RequestCost& cost) const;
  // The same; where it cannot, that was answered.
  bool MayBegin(const client::Header& header, const RequestCost& cost);
  // Returns whether the client may wait, for `timeout` microseconds, for those that are not here;
  // where not, that was answered.
  bool MayLookFor(const client::Header& header, absl::Span<const base::ObjectId> ids, uint64_t timeout);

  // Begins a request that is answered later, with the arguments of its Start; where there are too
  // many, that was answered.
  template <typename Request, typename... Arguments>
  void Begin(const client::Header& header, const RequestCost& cost, Arguments&&... arguments);

  const SessionContext& context_;
  store::Store& store_;
  const Asker asker_;
  ProgramShare* const share_;
  bool left_ = false;
  bool greeted_ = false;
  bool read_only_ = false;
  PendingRequests pending_;
  EventFeed feed_;
};

}  // namespace tokamak::daemon
