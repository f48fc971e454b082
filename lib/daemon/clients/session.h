// Session is one client of the daemon: it turns its connection's frames into calls of the node, and
// answers. Requests answered later are objects (requests/).
//
// It knows no sockets (client_server.h). Untrusted input: a malformed frame ends the connection,
// requests are bounded, and pins and unsealed objects go back with the session, unless Leave gave
// them away. Thread rule: the control loop.
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

// Waiting requests of one client; beyond, kResourceExhausted.
constexpr size_t kMaxWaitingRequests = 4096;
constexpr size_t kMaxWaitingIds = 65536;  // objects in all of them
// Objects without a known holder that a node's programs wait for together; the rest of its bound in
// the directory is for objects that other nodes have it bring. One program gets at most as many as
// remain free.
constexpr size_t kMaxLookedFor = 49152;

class Session final {
 public:
  using Send = Asker::Send;

  // `context` must outlive it. `program`: for memory accounts. `send` may drop frames. `congested`:
  // true while events, never answers, are left out. `share`: the program's, outlives it (null:
  // unbounded and alone).
  Session(const SessionContext& context, const std::string& program, Send send, EventFeed::Congested congested,
          ProgramShare* share = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Ends all requests of a gone client that may still write to its unsealed objects. The caller
  // drops or abandons the owner. No Handle afterwards.
  store::Owner Leave();

  // Handles a whole frame. An error is a protocol violation: end the connection.
  absl::Status Handle(absl::Span<const uint8_t> frame);

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

  // Returns the refusal of one more waiting request.
  absl::Status CheckBegin(const RequestCost& cost) const;
  // Answers it.
  bool MayBegin(const client::Header& header, const RequestCost& cost);
  // True if the client may wait `timeout` microseconds for missing `ids`; answers a refusal.
  bool MayLookFor(const client::Header& header, absl::Span<const base::ObjectId> ids, uint64_t timeout);

  // Begins a request answered later, with its Start's arguments, or answers the refusal.
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
