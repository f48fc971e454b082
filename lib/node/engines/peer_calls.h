// PeerCalls are the calls of peers at a local engine: those that the node works on, and those that
// wait for their turn.
//
// The first kCallsOfTask of one task of the endpoint go to the handler at once. The others wait,
// with a copy of their bytes, for tasks of their own, in two queues: what nodes say of their own
// lives (IsOfOwnLife) has three of four turns, and is refused last, so that a lease does not wait
// for what programs ask. Each queue is in the order in which the calls came, and no peer has the
// last of its places (base/fair_share.h).
//
// Law: a task hands out at most kCallsOfTask calls.
// Thread rule: the node's control loop, which is the endpoint's.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/fair_share.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/node/engines/engine.h"
#include "lib/transport/caller.h"
#include "lib/transport/reply.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

class PeerCalls final {
 public:
  static constexpr uint32_t kCallsOfTask = 64;

  // `loop` must outlive it, and it all that Take returned. `handler` must not drop it.
  PeerCalls(base::EventLoop& loop, transport::CallHandler handler) : loop_(loop), handler_(std::move(handler)) {}
  PeerCalls(const PeerCalls&) = delete;
  PeerCalls& operator=(const PeerCalls&) = delete;

  // Takes a call from the endpoint. Returns null, which refuses it, if its peer has as many that
  // wait as are left free of kMaxReportsWaiting, or of kMaxOwnReports.
  base::Pending Take(absl::Span<const uint8_t> request, transport::Reply reply);

  // Drops the work on all, and refuses those that wait. Dropped work may end further calls.
  void DropAll();

 private:
  using Places = base::FairShare<verbs::Address>;

  // A call as the endpoint holds it: first it waits, then the node works on it.
  class OneCall final : public base::Handle {
   public:
    ~OneCall() override { Enter(nullptr); }

    base::Link<OneCall> link;
    std::vector<uint8_t> request;  // while it waits
    transport::Reply reply;        // the same
    Places::Claim place;           // the same
    base::Pending work;            // then
    const base::Lifetime lifetime;

    // Moves it to `list`; null: to none.
    void Enter(base::IntrusiveList<OneCall, &OneCall::link>* list);

   private:
    base::IntrusiveList<OneCall, &OneCall::link>* list_ = nullptr;
  };
  using Calls = base::IntrusiveList<OneCall, &OneCall::link>;

  void RunWaiting();
  uint32_t Run(Calls& waiting, uint32_t most);

  base::EventLoop& loop_;
  const transport::CallHandler handler_;
  Places own_places_{kMaxOwnReports};
  Places places_{kMaxReportsWaiting};
  Calls own_waiting_;
  Calls waiting_;
  Calls at_work_;
  base::Timer turn_;
};

}  // namespace tokamak::node
