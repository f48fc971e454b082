// The control loop's end of an engine.
#include <utility>

#include "glog/logging.h"
#include "lib/node/engine.h"

namespace tokamak::node {

namespace {
absl::Status Gone() { return absl::UnavailableError("this node's transport engine has ended"); }
}  // namespace

class EngineLink::Ticket final {
 public:
  Ticket(std::shared_ptr<EngineLink*> link, uint64_t token) : link_(std::move(link)), token_(token) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (!used_) Send(Gone(), {});
  }
  void Answer(absl::Span<const uint8_t> reply) {
    if (!std::exchange(used_, true)) Send(absl::OkStatus(), reply);
  }

 private:
  void Send(absl::Status status, absl::Span<const uint8_t> reply) {
    if (*link_ == nullptr) return;
    EngineCommand command;
    command.kind = EngineCommand::Kind::kReply;
    command.token = token_;
    command.status = std::move(status);
    command.bytes.assign(reply.begin(), reply.end());
    (*link_)->Send(std::move(command));
  }

  const std::shared_ptr<EngineLink*> link_;
  const uint64_t token_;
  bool used_ = false;
};

EngineLink::EngineLink(base::EventLoop& control_loop)
    : loop_(control_loop),
      from_engine_(control_loop, kEngineMailbox, [this](EngineReport report) { Handle(std::move(report)); }),
      closed_(control_loop.MakeSignal([this] { Closed(); })),
      handlers_(Refusal()),
      self_(std::make_shared<EngineLink*>(this)) {}

EngineLink::~EngineLink() {
  CHECK(to_engine_ == nullptr) << "an engine's host must be dropped before its link";
  *self_ = nullptr;
}

template <typename Handler>
void EngineLink::Await(base::NumberedTable<Awaited<Handler>>& table, uint64_t token, Handler handler) {
  table.Bind(token, table.Claim(token, std::move(handler)));
}

template <typename Handler>
Handler EngineLink::TakeOut(base::NumberedTable<Awaited<Handler>>& table, Awaited<Handler>* awaited) {
  CHECK(awaited != nullptr);
  Handler handler = std::move(awaited->handler);
  table.Unbind(awaited->token);
  table.Release(awaited);
  return handler;
}

EngineLink::Handlers EngineLink::Refusal() {
  Handlers handlers;
  handlers.pin = [this](uint64_t pin, const base::ObjectId&) {
    Pinned(pin, absl::UnavailableError("this node does not serve objects now"));
  };
  handlers.unpin = [](uint64_t) {};
  handlers.call = [](absl::Span<const uint8_t>, const Reply&) {};
  return handlers;
}

absl::StatusOr<uint64_t> EngineLink::Pull(const transport::PullRequest& request, absl::Span<uint8_t> memory,
                                          PullHandlers handlers) {
  if (to_engine_ == nullptr) return Gone();
  if (pulls_.size() >= kMaxEnginePulls) {
    return absl::ResourceExhaustedError("too many objects are on their way here: waiting for some to arrive");
  }
  const uint64_t token = ++last_token_;
  Await(pulls_, token, std::move(handlers));
  EngineCommand command;
  command.kind = EngineCommand::Kind::kPull;
  command.token = token;
  command.pull = request;
  command.memory = memory;
  Send(std::move(command));
  return token;
}

void EngineLink::Cancel(uint64_t token) {
  if (pulls_.Find(token) == nullptr) return;
  EngineCommand command;
  command.kind = EngineCommand::Kind::kCancel;
  command.token = token;
  Send(std::move(command));
}

void EngineLink::Pinned(uint64_t pin, absl::StatusOr<transport::PinnedObject> object) {
  EngineCommand command;
  command.kind = EngineCommand::Kind::kPinned;
  command.token = pin;
  command.status = object.status();
  if (object.ok()) command.pinned = *object;
  Send(std::move(command));
}

void EngineLink::Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                      CallCallback done) {
  if (to_engine_ == nullptr) return RefuseCall(std::move(done), Gone());
  if (calls_.size() >= kMaxEngineCalls) {
    return RefuseCall(std::move(done), absl::ResourceExhaustedError(
                                           "too many calls to other nodes wait for an answer: try again later"));
  }
  const uint64_t token = ++last_token_;
  Await(calls_, token, std::move(done));
  EngineCommand command;
  command.kind = EngineCommand::Kind::kCall;
  command.token = token;
  command.peer = peer;
  command.deadline = deadline;
  command.bytes.assign(request.begin(), request.end());
  Send(std::move(command));
}

void EngineLink::Settle(std::function<void()> done) {
  settling_.push_back(std::move(done));
  if (to_engine_ == nullptr) return closed_->Raise();
  EngineCommand command;
  command.kind = EngineCommand::Kind::kSettle;
  Send(std::move(command));
}

void EngineLink::RefuseCall(CallCallback done, absl::Status status) {
  refused_.push_back([done = std::move(done), status = std::move(status)] { done(status); });
  if (refusing_.armed()) return;
  refusing_ = loop_.Post([this] {
    const std::vector<base::Task> refused = std::exchange(refused_, {});
    for (const base::Task& refuse : refused) refuse();
  });
}

// To an engine that is gone nothing need be said: what this is about went with it.
void EngineLink::Send(EngineCommand command) {
  if (to_engine_ != nullptr) to_engine_->Send(std::move(command));
}

void EngineLink::Handle(EngineReport report) {
  switch (report.kind) {
    case EngineReport::Kind::kPin:
      return handlers_.pin(report.token, report.id);
    case EngineReport::Kind::kUnpin:
      return handlers_.unpin(report.token);
    case EngineReport::Kind::kReserve:
      return HandleReserve(report);
    case EngineReport::Kind::kPullDone:
      return HandlePullDone(report);
    case EngineReport::Kind::kCallDone:
      return HandleCallDone(report);
    case EngineReport::Kind::kCalled: {
      const auto ticket = std::make_shared<Ticket>(self_, report.token);
      return handlers_.call(report.bytes, [ticket](absl::Span<const uint8_t> reply) { ticket->Answer(reply); });
    }
    case EngineReport::Kind::kSettled:
      return HandleSettled();
    case EngineReport::Kind::kNone:
      break;
  }
}

void EngineLink::HandleReserve(const EngineReport& report) {
  const auto* pull = pulls_.Find(report.token);
  CHECK(pull != nullptr);
  const absl::StatusOr<absl::Span<uint8_t>> memory = pull->handler.reserve(report.size);
  EngineCommand command;
  command.kind = EngineCommand::Kind::kReserved;
  command.token = report.token;
  command.status = memory.status();
  if (memory.ok()) command.memory = *memory;
  Send(std::move(command));
}

void EngineLink::HandlePullDone(const EngineReport& report) {
  TakeOut(pulls_, pulls_.Find(report.token)).done(report.status, report.report);
}

void EngineLink::HandleCallDone(const EngineReport& report) {
  const CallCallback done = TakeOut(calls_, calls_.Find(report.token));
  if (!report.status.ok()) return done(report.status);
  done(absl::MakeConstSpan(report.bytes));
}

// Each question has its answer, in order; once the engine is gone all have.
void EngineLink::HandleSettled() {
  if (settling_.empty()) return;
  const std::function<void()> done = std::move(settling_.front());
  settling_.erase(settling_.begin());
  done();
}

// The host is gone, after its last report: with it whatever touched memory, and whoever could answer.
void EngineLink::Closed() {
  const std::shared_ptr<EngineLink*> self = self_;  // a callback may drop us
  for (EngineReport& report : std::exchange(last_reports_, {})) {
    Handle(std::move(report));
    if (*self == nullptr) return;
  }
  while (!pulls_.empty()) {
    TakeOut(pulls_, pulls_.first()).done(Gone(), {});
    if (*self == nullptr) return;
  }
  while (!calls_.empty()) {
    TakeOut(calls_, calls_.first())(Gone());
    if (*self == nullptr) return;
  }
  for (const std::function<void()>& done : std::exchange(settling_, {})) {
    done();
    if (*self == nullptr) return;
  }
}

}  // namespace tokamak::node
