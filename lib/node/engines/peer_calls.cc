#include "lib/node/engines/peer_calls.h"

#include <memory>

#include "lib/node/calls/call_router.h"

namespace tokamak::node {

void PeerCalls::OneCall::Enter(base::IntrusiveList<OneCall, &OneCall::link>* list) {
  if (list_ != nullptr) list_->Remove(this);
  list_ = list;
  if (list_ != nullptr) list_->PushBack(this);
}

base::Pending PeerCalls::Take(absl::Span<const uint8_t> request, transport::Reply reply) {
  const bool own = IsOfOwnLife(request);
  Calls& waiting = own ? own_waiting_ : waiting_;
  if (waiting.empty() && reply.nth() <= kCallsOfTask) {
    base::Pending work = handler_(request, std::move(reply));
    if (work == nullptr) return nullptr;
    auto call = std::make_unique<OneCall>();
    call->work = std::move(work);
    call->Enter(&at_work_);
    return call;
  }
  Places& places = own ? own_places_ : places_;
  if (!places.MayTake(reply.peer())) return nullptr;  // a reply that is dropped refuses
  auto call = std::make_unique<OneCall>();
  call->place = places.Take(reply.peer());
  call->request.assign(request.begin(), request.end());
  call->reply = std::move(reply);
  call->Enter(&waiting);
  if (!turn_.armed()) turn_ = loop_.Post([this] { RunWaiting(); });
  return call;
}

void PeerCalls::RunWaiting() {
  const uint32_t ran = Run(own_waiting_, kCallsOfTask - kCallsOfTask / 4);
  Run(waiting_, kCallsOfTask - ran);
  if (!own_waiting_.empty() || !waiting_.empty()) turn_ = loop_.Post([this] { RunWaiting(); });
}

// Returns how many of `waiting` ran, at most `most`.
uint32_t PeerCalls::Run(Calls& waiting, uint32_t most) {
  uint32_t ran = 0;
  for (; ran < most && !waiting.empty(); ++ran) {
    OneCall& call = *waiting.first();
    call.Enter(nullptr);
    call.place = Places::Claim();
    const base::Lifetime::Watch dropped = call.lifetime.Watched();
    const std::vector<uint8_t> request = std::move(call.request);
    base::Pending work = handler_(request, std::move(call.reply));
    if (dropped.over() || work == nullptr) continue;
    call.work = std::move(work);
    call.Enter(&at_work_);
  }
  return ran;
}

void PeerCalls::DropAll() {
  for (Calls* const calls : {&own_waiting_, &waiting_, &at_work_}) {
    while (!calls->empty()) {
      OneCall& call = *calls->first();
      call.Enter(nullptr);
      call.place = Places::Claim();
      const base::Pending work = std::move(call.work);
      const transport::Reply refused = std::move(call.reply);
    }
  }
}

}  // namespace tokamak::node
