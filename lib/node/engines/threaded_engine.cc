#include "lib/node/engines/threaded_engine.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::node {

class ThreadedEngine::Ticket final {
 public:
  Ticket(ThreadedEngine& engine, uint64_t token) : engine_(engine), watch_(engine.lifetime_.Watched()), token_(token) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() { Answer(EngineGone()); }
  void Answer(absl::StatusOr<std::vector<uint8_t>> reply) {
    if (!watch_.over()) engine_.Answer(token_, std::move(reply));
  }

 private:
  ThreadedEngine& engine_;
  const base::Lifetime::Watch watch_;
  const uint64_t token_;
};

ThreadedEngine::ThreadedEngine(base::EventLoop& control_loop, size_t max_calls)
    : loop_(control_loop),
      from_engine_(control_loop, kEngineMailbox, [this](const EngineReport& report) { HandleAny(report); }),
      closed_(control_loop.MakeSignal([this] { Closed(); })),
      handlers_(RefusalsOf(*this)),
      calls_(control_loop, max_calls, *this) {}

ThreadedEngine::~ThreadedEngine() {
  CHECK(to_engine_ == nullptr) << "an engine's host must be dropped before the node's end of it";
}

void ThreadedEngine::HostOpened(base::Mailbox<EngineCommand>& commands, const verbs::Address& address,
                                uint32_t max_call_size) {
  to_engine_ = std::make_unique<Outbox<EngineCommand>>(loop_, commands);
  address_ = address;
  calls_.Open(max_call_size);
}

void ThreadedEngine::HostEnded(std::vector<EngineReport> last_reports) {
  to_engine_.reset();
  calls_.Close();
  last_reports_ = std::move(last_reports);
  closed_->Raise();
}

void ThreadedEngine::StopServing() {
  handlers_ = RefusalsOf(*this);
  while (!called_.empty()) Answer(called_.first()->token, EngineGone());
}

// An engine that is gone needs no command: the subject of the command went with it.
void ThreadedEngine::Command(EngineCommand command) {
  if (to_engine_ != nullptr) to_engine_->Send(std::move(command));
}

// ---- what the node asks of peers

absl::StatusOr<uint64_t> ThreadedEngine::Pull(const transport::PullRequest& request, absl::Span<uint8_t> memory,
                                              std::atomic<uint64_t>& moved, PullCallback done) {
  if (!open()) return EngineGone();
  if (absl::Status status = pulls_.CheckRoom(); !status.ok()) return status;
  const uint64_t token = pulls_.Add(std::move(done)).token;
  Command(PullCommand{token, request, memory, &moved});
  return token;
}

void ThreadedEngine::Cancel(uint64_t token) {
  if (pulls_.Find(token) != nullptr) Command(CancelPullCommand{token});
}

base::Pending ThreadedEngine::Send(const EngineCalls::Request& request) {
  Command(CallCommand{
      request.call, request.own, request.peer, request.deadline, {request.bytes.begin(), request.bytes.end()}});
  return nullptr;
}

// The host reports its end, which bounds the commands that wait for it.
bool ThreadedEngine::Cancel(uint64_t call, base::Pending) {
  Command(CancelCallCommand{call});
  return false;
}

void ThreadedEngine::Drain(std::function<void()> done) {
  draining_.push_back(std::move(done));
  if (!open()) return closed_->Raise();
  Command(DrainCommand{});
}

// ---- what the host reports

void ThreadedEngine::HandleAny(const EngineReport& report) {
  std::visit([this](const auto& one) { Handle(one); }, report);
}

void ThreadedEngine::Handle(const CallDoneReport& report) {
  if (!report.reply.ok()) return calls_.End(report.call, report.reply.status());
  calls_.End(report.call, absl::MakeConstSpan(*report.reply));
}

// Each question has its answer, in order; once the endpoint is gone all have.
void ThreadedEngine::Handle(const DrainedReport&) {
  if (draining_.empty()) return;
  const std::function<void()> done = std::move(draining_.front());
  draining_.erase(draining_.begin());
  done();
}

// ---- what peers ask of the node

void ThreadedEngine::Pinned(transport::PinId pin, absl::StatusOr<transport::PinnedObject> object) {
  Command(PinnedCommand{pin, std::move(object)});
}

void ThreadedEngine::Handle(const CalledReport& report) {
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

void ThreadedEngine::Handle(const CallCancelledReport& report) {
  if (OneCalled* called = called_.Find(report.called)) DropCalled(called);
}

void ThreadedEngine::Answer(uint64_t token, absl::StatusOr<std::vector<uint8_t>> reply) {
  OneCalled* called = called_.Find(token);
  if (called == nullptr) return;  // answered, or cancelled
  Command(ReplyCommand{token, std::move(reply)});
  DropCalled(called);
}

void ThreadedEngine::DropCalled(OneCalled* called) {
  const base::Pending work = std::move(called->work);  // dropped last: what it drops may look here
  called_.Unbind(called->token);
  called_.Release(called);
}

// ---- the end

// The host is gone, after its last report: with it whatever touched memory, and whoever could
// answer.
void ThreadedEngine::Closed() {
  const base::Lifetime::Watch watch = lifetime_.Watched();  // a callback may drop us
  for (const EngineReport& report : std::exchange(last_reports_, {})) {
    HandleAny(report);
    if (watch.over()) return;
  }
  pulls_.EndAll();
  if (watch.over()) return;
  calls_.EndAll();
  if (watch.over()) return;
  while (!called_.empty()) DropCalled(called_.first());
  for (const std::function<void()>& done : std::exchange(draining_, {})) {
    done();
    if (watch.over()) return;
  }
}

}  // namespace tokamak::node
