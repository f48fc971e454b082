#include "lib/node/engines/engine_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/node/engines/engine.h"

namespace tokamak::node {

// It and its call know each other as long as the asker waits.
class EngineCalls::CallHandle final : public base::Handle {
 public:
  CallHandle(EngineCalls& calls, OneCall* call) : calls_(calls), call_(call) { call->handle = this; }
  ~CallHandle() override {
    if (call_ != nullptr) calls_.Cancel(call_);
  }
  void Detach() { call_ = nullptr; }

 private:
  EngineCalls& calls_;
  OneCall* call_;
};

EngineCalls::EngineCalls(base::EventLoop& loop, size_t max_calls, Sender& sender)
    : loop_(loop), sender_(sender), turns_(max_calls, kMaxCallsOfPeer), refused_(loop) {}

EngineCalls::~EngineCalls() {
  for (OneCall* call = calls_.first(); call != nullptr; call = base::NumberedTable<OneCall>::Next(call)) {
    TakeCallback(call);
  }
}

base::Pending EngineCalls::Refuse(absl::Status why, CallCallback done) {
  return refused_.Add([why = std::move(why), done = std::move(done)] { done(why); });
}

EngineCalls::OneCall* EngineCalls::Add(const verbs::Address& peer, CallCallback done) {
  const uint64_t token = ++last_token_;
  OneCall* call = calls_.Claim(token, peer, std::move(done));
  calls_.Bind(token, call);
  return call;
}

base::Pending EngineCalls::Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                                CallCallback done) {
  if (!open_) return Refuse(EngineGone(), std::move(done));
  if (own_calls_ >= kOwnCalls) {
    return Refuse(absl::ResourceExhaustedError(absl::StrCat(own_calls_, " calls of this node wait for an answer")),
                  std::move(done));
  }
  OneCall* call = Add(peer, std::move(done));
  call->own = true;
  ++own_calls_;
  Send(call, request, deadline);
  return std::make_unique<CallHandle>(*this, call);
}

base::Pending EngineCalls::CallInTurn(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                      base::Duration deadline, CallCallback done) {
  if (!open_) return Refuse(EngineGone(), std::move(done));
  if (turns_.waiting() >= kMaxCallsWaiting) {
    return Refuse(absl::ResourceExhaustedError(absl::StrCat(
                      kMaxCallsWaiting, " calls to other nodes wait for their turn already: try again later")),
                  std::move(done));
  }
  OneCall* call = Add(peer, std::move(done));
  if (turns_.Begin(peer, *call)) {
    Send(call, request, deadline);
  } else {
    call->deadline = loop_.Now() + deadline;
    call->overdue = loop_.RunAt(call->deadline, [this, call] { Overdue(call); });
    call->request.assign(request.begin(), request.end());
  }
  return std::make_unique<CallHandle>(*this, call);
}

void EngineCalls::Send(OneCall* call, absl::Span<const uint8_t> request, base::Duration deadline) {
  call->sent = sender_.Send({call->token, call->own, call->peer, deadline, request});
}

void EngineCalls::SendNext() {
  while (Turns::Turn* const turn = turns_.Next()) {
    auto* const call = static_cast<OneCall*>(turn);
    call->overdue.Cancel();
    Send(call, std::exchange(call->request, {}), call->deadline - loop_.Now());
  }
}

// In a task of its own: those whose turn it is now may be about to be cancelled as well.
void EngineCalls::SendNextSoon() {
  if (turns_.waiting() > 0 && !next_.armed()) next_ = loop_.Post([this] { SendNext(); });
}

void EngineCalls::Overdue(OneCall* call) {
  const CallCallback done = TakeOut(call);
  SendNext();
  done(
      absl::DeadlineExceededError("as many calls to other nodes as may be are under way, and until its deadline it was "
                                  "not this one's turn"));
}

// One of a program's that was sent counts until the sender says that it is over.
void EngineCalls::Cancel(OneCall* call) {
  TakeCallback(call);
  if (std::exchange(call->own, false)) --own_calls_;
  if (call->waits() || sender_.Cancel(call->token, std::move(call->sent))) {
    TakeOut(call);
    SendNextSoon();
  }
}

void EngineCalls::End(uint64_t call, const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  const CallCallback done = TakeOut(calls_.Find(call));
  SendNext();
  if (done != nullptr) done(reply);
}

void EngineCalls::EndAll() {
  CHECK(!open_);
  const base::Lifetime::Watch watch = lifetime_.Watched();
  while (!calls_.empty()) {
    const CallCallback done = TakeOut(calls_.first());
    if (done != nullptr) done(EngineGone());
    if (watch.over()) return;
  }
}

// From now on nobody waits for it.
EngineCalls::CallCallback EngineCalls::TakeCallback(OneCall* call) {
  if (call->handle != nullptr) std::exchange(call->handle, nullptr)->Detach();
  return std::exchange(call->done, nullptr);
}

EngineCalls::CallCallback EngineCalls::TakeOut(OneCall* call) {
  CHECK(call != nullptr);
  CallCallback done = TakeCallback(call);
  if (call->waits() || call->runs()) turns_.End(*call);
  if (call->own) --own_calls_;
  calls_.Unbind(call->token);
  calls_.Release(call);
  return done;
}

}  // namespace tokamak::node
