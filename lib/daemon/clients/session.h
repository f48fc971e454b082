// Session is one client of the daemon: it turns the frames of its connection into calls of the
// node, and answers them. Each request that is answered later is an object of its own (requests/).
//
// It knows no sockets: the ClientServer (client_server.h) feeds it frames and sends its answers. A
// client is untrusted: a malformed frame ends the connection, and its requests are bounded; its
// pins and unsealed objects go back when the session ends, unless Leave gave them away. Thread
// rule: the control loop.
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

// Waiting requests of one client; further ones are refused (kResourceExhausted).
constexpr size_t kMaxWaitingRequests = 4096;
constexpr size_t kMaxWaitingIds = 65536;  // objects in all of them together
// Objects without a known holder that a node's programs wait for together. The rest of what a node
// may wait for in its directory is left to objects that other nodes have it bring. One program
// waits for at most as many as are free for others: so nobody has them all.
constexpr size_t kMaxLookedFor = 49152;

class Session final {
 public:
  using Send = Asker::Send;

  // `context` must outlive it. `program` names the client in memory accounts. `send` may drop what
  // it cannot deliver. `congested`: true if the client is so far behind that events are left out;
  // answers never are. `share`: the program's; outlives it (null: unbounded and alone).
  Session(const SessionContext& context, const std::string& program, Send send, EventFeed::Congested congested,
          ProgramShare* share = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Ends all requests of a client that is gone while its program may still write to its unsealed
  // objects. The caller drops or abandons the returned owner. Do not call Handle afterwards.
  store::Owner Leave();

  // Handles a whole frame. An error is a protocol violation: end the connection.
  absl::Status Handle(absl::Span<const uint8_t> frame);

  // True once the client has sent its hello.
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
  // The same; a refusal is answered.
  bool MayBegin(const client::Header& header, const RequestCost& cost);
  // Returns whether the client may wait, for `timeout` microseconds, for the missing ones of `ids`;
  // a refusal is answered.
  bool MayLookFor(const client::Header& header, absl::Span<const base::ObjectId> ids, uint64_t timeout);

  // Begins a request that is answered later, with the arguments of its Start, or answers the
  // refusal.
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
