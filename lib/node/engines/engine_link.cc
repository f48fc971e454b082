#include "lib/node/engines/engine_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::node {

namespace {
absl::Status Gone() { return absl::UnavailableError("this node's transport engine has ended"); }
}  // namespace

class EngineLink::Ticket final {
 public:
  Ticket(EngineLink& link, uint64_t token) : link_(link), watch_(link.lifetime_.Watched()), token_(token) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() { Answer(Gone()); }
  void Answer(absl::StatusOr<std::vector<uint8_t>> reply) {
    if (!watch_.over()) link_.Answer(token_, std::move(reply));
  }

 private:
  EngineLink& link_;
  const base::Lifetime::Watch watch_;
  const uint64_t token_;
};

// It and its call know each other as long as the asker waits.
class EngineLink::CallHandle final : public base::Handle {
 public:
  CallHandle(EngineLink& link, OneCall* call) : link_(link), call_(call) { call->handle = this; }
  ~CallHandle() override {
    if (call_ != nullptr) link_.CancelCall(call_);
  }
  void Detach() { call_ = nullptr; }

 private:
  EngineLink& link_;
  OneCall* call_;
};

EngineLink::EngineLink(base::EventLoop& control_loop, size_t max_calls)
    : loop_(control_loop),
      from_engine_(control_loop, kEngineMailbox, [this](const EngineReport& report) { HandleAny(report); }),
      closed_(control_loop.MakeSignal([this] { Closed(); })),
      handlers_(Refusal()),
      turns_(max_calls, kMaxCallsOfPeer),
      refused_(control_loop) {}

EngineLink::~EngineLink() {
  CHECK(to_engine_ == nullptr) << "an engine's host must be dropped before its link";
  for (OneCall* call = calls_.first(); call != nullptr; call = base::NumberedTable<OneCall>::Next(call)) {
    TakeCallback(call);
  }
}

EngineLink::Handlers EngineLink::Refusal() {
  Handlers handlers;
  handlers.pin = [this](transport::PinId pin, const base::ObjectVersion&) {
    Pinned(pin, absl::UnavailableError("this node does not serve objects now"));
  };
  handlers.unpin = [](transport::PinId) {};
  handlers.call = [](absl::Span<const uint8_t>, const transport::Reply&) { return nullptr; };
  return handlers;
}

void EngineLink::StopServing() {
  handlers_ = Refusal();
  while (!called_.empty()) Answer(called_.first()->token, Gone());
}

// ---- what the node asks of the engine

absl::StatusOr<uint64_t> EngineLink::Pull(const transport::PullRequest& request, absl::Span<uint8_t> memory,
                                          std::atomic<uint64_t>& moved, PullCallback done) {
  if (to_engine_ == nullptr) return Gone();
  if (pulls_.size() >= kMaxEnginePulls) {
    return absl::ResourceExhaustedError("too many objects are on their way here: waiting for some to arrive");
  }
  const uint64_t token = ++last_token_;
  pulls_.Bind(token, pulls_.Claim(token, std::move(done)));
  Send(PullCommand{token, request, memory, &moved});
  return token;
}

void EngineLink::Cancel(uint64_t token) {
  if (pulls_.Find(token) != nullptr) Send(CancelPullCommand{token});
}

void EngineLink::Pinned(transport::PinId pin, absl::StatusOr<transport::PinnedObject> object) {
  Send(PinnedCommand{pin, std::move(object)});
}

void EngineLink::Drain(std::function<void()> done) {
  draining_.push_back(std::move(done));
  if (to_engine_ == nullptr) return closed_->Raise();
  Send(DrainCommand{});
}

base::Pending EngineLink::RefuseCall(absl::Status why, CallCallback done) {
  return refused_.Add([why = std::move(why), done = std::move(done)] { done(why); });
}

EngineLink::OneCall* EngineLink::AddCall(CallCallback done) {
  const uint64_t token = ++last_token_;
  OneCall* call = calls_.Claim(token, std::move(done));
  calls_.Bind(token, call);
  return call;
}

base::Pending EngineLink::Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                               CallCallback done) {
  if (to_engine_ == nullptr) return RefuseCall(Gone(), std::move(done));
  if (own_calls_ >= kOwnCalls) {
    return RefuseCall(absl::ResourceExhaustedError(absl::StrCat(own_calls_, " calls of this node wait for an answer")),
                      std::move(done));
  }
  OneCall* call = AddCall(std::move(done));
  call->own = true;
  ++own_calls_;
  Send(CallCommand{call->token, /*own=*/true, peer, deadline, {request.begin(), request.end()}});
  return std::make_unique<CallHandle>(*this, call);
}

base::Pending EngineLink::CallInTurn(CallCommand command, CallCallback done) {
  if (to_engine_ == nullptr) return RefuseCall(Gone(), std::move(done));
  if (turns_.waiting() >= kMaxCallsWaiting) {
    return RefuseCall(absl::ResourceExhaustedError(absl::StrCat(
                          kMaxCallsWaiting, " calls to other nodes wait for their turn already: try again later")),
                      std::move(done));
  }
  OneCall* call = AddCall(std::move(done));
  command.call = call->token;
  if (turns_.Begin(command.peer, *call)) {
    Send(std::move(command));
  } else {
    call->deadline = loop_.Now() + command.deadline;
    call->overdue = loop_.RunAt(call->deadline, [this, call] { OverdueCall(call); });
    call->command = std::move(command);
  }
  return std::make_unique<CallHandle>(*this, call);
}

void EngineLink::SendNextCalls() {
  while (Turns::Turn* const turn = turns_.Next()) {
    OneCall& call = static_cast<OneCall&>(*turn);
    call.overdue.Cancel();
    call.command.deadline = call.deadline - loop_.Now();
    Send(std::move(call.command));
  }
}

void EngineLink::OverdueCall(OneCall* call) {
  const CallCallback done = TakeOut(call);
  done(
      absl::DeadlineExceededError("as many calls to other nodes as may be are under way, and until its deadline it was "
                                  "not this one's turn"));
}

// One of a program's counts until the engine has reported its end, if that has heard of it.
void EngineLink::CancelCall(OneCall* call) {
  TakeCallback(call);
  if (std::exchange(call->own, false)) --own_calls_;
  if (call->waits()) {
    TakeOut(call);
  } else {
    Send(CancelCallCommand{call->token});
  }
}

// An engine that is gone needs no command: the subject of the command went with it.
void EngineLink::Send(EngineCommand command) {
  if (to_engine_ != nullptr) to_engine_->Send(std::move(command));
}

// From now on nobody waits for it.
transport::Caller::CallCallback EngineLink::TakeCallback(OneCall* call) {
  if (call->handle != nullptr) std::exchange(call->handle, nullptr)->Detach();
  return std::exchange(call->done, nullptr);
}

transport::Caller::CallCallback EngineLink::TakeOut(OneCall* call) {
  CHECK(call != nullptr);
  CallCallback done = TakeCallback(call);
  const bool in_turn = call->waits() || call->runs();
  if (in_turn) turns_.End(*call);
  if (call->own) --own_calls_;
  calls_.Unbind(call->token);
  calls_.Release(call);
  if (in_turn) SendNextCalls();
  return done;
}

EngineLink::PullCallback EngineLink::TakeOut(OnePull* pull) {
  CHECK(pull != nullptr);
  PullCallback done = std::move(pull->done);
  pulls_.Unbind(pull->token);
  pulls_.Release(pull);
  return done;
}

// ---- what the engine reports

void EngineLink::HandleAny(const EngineReport& report) {
  std::visit([this](const auto& one) { Handle(one); }, report);
}

void EngineLink::Handle(const PullDoneReport& report) {
  const PullCallback done = TakeOut(pulls_.Find(report.pull));
  done(report.status, report.transfer);
}

void EngineLink::Handle(const CallDoneReport& report) {
  const CallCallback done = TakeOut(calls_.Find(report.call));
  if (done == nullptr) return;
  if (!report.reply.ok()) return done(report.reply.status());
  done(absl::MakeConstSpan(*report.reply));
}

// Each question has its answer, in order; once the engine is gone all have.
void EngineLink::Handle(const DrainedReport&) {
  if (draining_.empty()) return;
  const std::function<void()> done = std::move(draining_.front());
  draining_.erase(draining_.begin());
  done();
}

// ---- calls of peers

void EngineLink::Handle(const CalledReport& report) {
  called_.Bind(report.called, called_.Claim(report.called));
  const base::Lifetime::Watch watch = lifetime_.Watched();
  base::Pending work;
  {
    const auto ticket = std::make_shared<Ticket>(*this, report.called);
    const auto answer = [ticket](absl::Span<const uint8_t> reply) {
      const std::shared_ptr<Ticket> self = ticket;  // the reply may be part of the work, and end with it
      self->Answer(std::vector<uint8_t>(reply.begin(), reply.end()));
    };
    work = handlers_.call(report.request, transport::Reply(answer, report.peer));
  }
  if (watch.over()) return;
  if (OneCalled* called = called_.Find(report.called)) called->work = std::move(work);
}

void EngineLink::Handle(const CallCancelledReport& report) {
  if (OneCalled* called = called_.Find(report.called)) DropCalled(called);
}

void EngineLink::Answer(uint64_t token, absl::StatusOr<std::vector<uint8_t>> reply) {
  OneCalled* called = called_.Find(token);
  if (called == nullptr) return;  // answered, or cancelled
  Send(ReplyCommand{token, std::move(reply)});
  DropCalled(called);
}

void EngineLink::DropCalled(OneCalled* called) {
  const base::Pending work = std::move(called->work);  // dropped last: what it drops may look here
  called_.Unbind(called->token);
  called_.Release(called);
}

// ---- the end

// The host is gone, after its last report: with it whatever touched memory, and whoever could
// answer.
void EngineLink::Closed() {
  const base::Lifetime::Watch watch = lifetime_.Watched();  // a callback may drop us
  for (const EngineReport& report : std::exchange(last_reports_, {})) {
    HandleAny(report);
    if (watch.over()) return;
  }
  while (!pulls_.empty()) {
    const PullCallback done = TakeOut(pulls_.first());
    done(Gone(), {});
    if (watch.over()) return;
  }
  while (!calls_.empty()) {
    const CallCallback done = TakeOut(calls_.first());
    if (done != nullptr) done(Gone());
    if (watch.over()) return;
  }
  while (!called_.empty()) DropCalled(called_.first());
  for (const std::function<void()>& done : std::exchange(draining_, {})) {
    done();
    if (watch.over()) return;
  }
}

}  // namespace tokamak::node
