// The engine loop's end of an engine.
#include <utility>

#include "glog/logging.h"
#include "lib/node/engine.h"

namespace tokamak::node {

// Where a pull lands: memory that came with it, or that the control loop is asked for.
class EngineHost::PullSink final : public transport::Sink {
 public:
  PullSink(EngineHost& host, uint64_t token, bool has_memory, absl::Span<uint8_t> memory)
      : host_(host), token_(token), has_memory_(has_memory), memory_(memory) {
    host_.pulls_.emplace(token_, this);
  }
  ~PullSink() override { host_.pulls_.erase(token_); }

  // The endpoint's name for it, known once it was started.
  void SetPull(transport::PullId pull) { pull_ = pull; }
  transport::PullId pull() const { return pull_; }

  void Reserve(const transport::ObjectSize& size, ReserveCallback done) override {
    done_ = std::move(done);
    if (has_memory_) {
      posted_ = host_.loop_.Post([this] { Answer(memory_); });
      return;
    }
    EngineReport report;
    report.kind = EngineReport::Kind::kReserve;
    report.token = token_;
    report.size = size;
    host_.to_control_.Send(std::move(report));
  }

  void Answer(absl::StatusOr<absl::Span<uint8_t>> memory) {
    if (const ReserveCallback done = std::exchange(done_, nullptr)) done(std::move(memory));
  }

  void Done(const absl::Status& status, const transport::TransferReport& transfer) override {
    EngineReport report;
    report.kind = EngineReport::Kind::kPullDone;
    report.token = token_;
    report.status = status;
    report.report = transfer;
    host_.to_control_.Send(std::move(report));
  }

 private:
  EngineHost& host_;
  const uint64_t token_;
  const bool has_memory_;
  const absl::Span<uint8_t> memory_;
  transport::PullId pull_ = 0;
  ReserveCallback done_;
  base::Timer posted_;
};

EngineHost::EngineHost(base::EventLoop& engine_loop, EngineLink& link)
    : loop_(engine_loop),
      link_(link),
      from_control_(engine_loop, kEngineMailbox, [this](EngineCommand command) { Handle(std::move(command)); }),
      to_control_(engine_loop, link.from_engine_) {}

absl::StatusOr<std::unique_ptr<EngineHost>> EngineHost::Open(base::EventLoop& engine_loop, EngineLink& link,
                                                             absl::Span<const transport::Rail> rails,
                                                             const verbs::Address& listen, base::Random random,
                                                             base::Trace& trace,
                                                             const transport::EndpointOptions& options) {
  if (options.max_transfers > kMaxEnginePulls) {
    return absl::InvalidArgumentError("an engine serves and pulls at most 1024 transfers at once");
  }
  auto host = std::unique_ptr<EngineHost>(new EngineHost(engine_loop, link));
  auto endpoint = transport::Endpoint::Open(engine_loop, rails, *host, random, trace, options);
  if (!endpoint.ok()) return endpoint.status();
  host->endpoint_ = *std::move(endpoint);
  if (absl::Status status = host->endpoint_->Listen(listen); !status.ok()) return status;
  host->endpoint_->SetCallHandler([host = host.get()](absl::Span<const uint8_t> request, auto reply) {
    host->HandleCalled(request, std::move(reply));
  });
  link.to_engine_ = std::make_unique<Outbox<EngineCommand>>(link.loop_, host->from_control_);
  link.address_ = host->endpoint_->address();
  link.max_call_size_ = host->endpoint_->max_call_size();
  return host;
}

EngineHost::~EngineHost() {
  endpoint_.reset();
  if (link_.to_engine_ == nullptr) return;  // it was never opened
  link_.to_engine_.reset();
  link_.last_reports_ = to_control_.TakeWaiting();
  link_.closed_->Raise();
}

void EngineHost::Handle(EngineCommand command) {
  switch (command.kind) {
    case EngineCommand::Kind::kPull:
      return HandlePull(std::move(command));
    case EngineCommand::Kind::kCancel:
      if (const auto pull = pulls_.find(command.token); pull != pulls_.end())
        endpoint_->CancelPull(pull->second->pull());
      return;
    case EngineCommand::Kind::kPinned:
      return HandlePinned(command);
    case EngineCommand::Kind::kReserved: {
      const auto sink = pulls_.find(command.token);
      if (sink == pulls_.end()) return;  // the transfer ended before its memory came
      if (!command.status.ok()) return sink->second->Answer(command.status);
      return sink->second->Answer(command.memory);
    }
    case EngineCommand::Kind::kCall:
      return HandleCall(std::move(command));
    case EngineCommand::Kind::kReply:
      return HandleReply(command);
    case EngineCommand::Kind::kSettle:
      return endpoint_->Settle([this] {
        EngineReport report;
        report.kind = EngineReport::Kind::kSettled;
        to_control_.Send(std::move(report));
      });
    case EngineCommand::Kind::kNone:
      break;
  }
}

void EngineHost::HandlePull(EngineCommand command) {
  const bool has_memory = command.pull.size_known;
  auto sink = std::make_unique<PullSink>(*this, command.token, has_memory, command.memory);
  PullSink& started = *sink;  // it ends in a task of its own
  started.SetPull(endpoint_->StartPull(command.pull, std::move(sink)));
}

// ---- what we ask of peers

void EngineHost::HandleCall(EngineCommand command) {
  endpoint_->Call(command.peer, command.bytes, command.deadline,
                  [this, token = command.token](absl::StatusOr<absl::Span<const uint8_t>> reply) {
                    EngineReport report;
                    report.kind = EngineReport::Kind::kCallDone;
                    report.token = token;
                    report.status = reply.status();
                    if (reply.ok()) report.bytes.assign(reply->begin(), reply->end());
                    to_control_.Send(std::move(report));
                  });
}

// ---- what peers ask of us

void EngineHost::HandleCalled(absl::Span<const uint8_t> request, transport::Endpoint::Reply reply) {
  if (to_control_.waiting() >= kMaxReportsWaiting) return;  // a reply that is dropped tells the peer
  EngineReport report;
  report.kind = EngineReport::Kind::kCalled;
  report.token = ++last_call_;
  report.bytes.assign(request.begin(), request.end());
  replies_.emplace(report.token, std::move(reply));
  to_control_.Send(std::move(report));
}

void EngineHost::HandleReply(const EngineCommand& command) {
  const auto reply = replies_.extract(command.token);
  CHECK(!reply.empty());
  if (command.status.ok()) reply.mapped()(command.bytes);
}

void EngineHost::Pin(const base::ObjectId& id, transport::PinId pin, PinCallback done) {
  pins_.emplace(pin, std::move(done));
  if (to_control_.waiting() >= kMaxReportsWaiting) {
    refused_pins_.insert(pin);
    refusing_ = loop_.Post([this] { RefusePins(); });
    return;
  }
  EngineReport report;
  report.kind = EngineReport::Kind::kPin;
  report.token = pin;
  report.id = id;
  to_control_.Send(std::move(report));
}

void EngineHost::RefusePins() {
  for (const uint64_t pin : std::exchange(refused_pins_, {})) {
    const auto asked = pins_.extract(pin);
    if (!asked.empty()) asked.mapped()(absl::ResourceExhaustedError("this node is asked for more than it can answer"));
  }
}

void EngineHost::HandlePinned(const EngineCommand& command) {
  const auto asked = pins_.extract(command.token);
  if (asked.empty()) return;  // given back while it was asked for
  if (!command.status.ok()) return asked.mapped()(command.status);
  asked.mapped()(command.pinned);
}

void EngineHost::Unpin(transport::PinId pin) {
  pins_.erase(pin);
  if (refused_pins_.erase(pin) != 0) return;
  EngineReport report;
  report.kind = EngineReport::Kind::kUnpin;
  report.token = pin;
  to_control_.Send(std::move(report));
}

}  // namespace tokamak::node
