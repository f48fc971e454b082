#include "lib/node/engine.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"

namespace tokamak::node {

// ---- control loop

EngineLink::EngineLink(base::EventLoop& control_loop)
    : loop_(control_loop),
      from_engine_(control_loop, kEngineMailbox, [this](EngineReport report) { Handle(std::move(report)); }) {}

EngineLink::~EngineLink() { CHECK(to_engine_ == nullptr) << "an engine's host must be dropped before its link"; }

uint64_t EngineLink::Pull(const transport::PullRequest& request, absl::Span<uint8_t> memory, PullHandlers handlers) {
  if (pulls_.size() >= kMaxEnginePulls) return 0;
  const uint64_t token = ++last_token_;
  pulls_.emplace(token, std::move(handlers));
  EngineCommand command;
  command.kind = EngineCommand::Kind::kPull;
  command.token = token;
  command.pull = request;
  command.memory = memory;
  Send(std::move(command));
  return token;
}

void EngineLink::Cancel(uint64_t token) {
  if (pulls_.count(token) == 0) return;
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
  if (calls_.size() >= kMaxEngineCalls) {
    refused_.erase(std::remove_if(refused_.begin(), refused_.end(), [](const auto& timer) { return !timer.armed(); }),
                   refused_.end());
    refused_.push_back(loop_.Post([done = std::move(done)] {
      done(absl::ResourceExhaustedError("too many calls to other nodes wait for an answer: try again later"));
    }));
    return;
  }
  const uint64_t token = ++last_token_;
  calls_.emplace(token, std::move(done));
  EngineCommand command;
  command.kind = EngineCommand::Kind::kCall;
  command.token = token;
  command.peer = peer;
  command.deadline = deadline;
  command.bytes.assign(request.begin(), request.end());
  Send(std::move(command));
}

void EngineLink::Send(EngineCommand command) {
  if (to_engine_ == nullptr) return;  // the engine is gone, and with it what this was about
  CHECK(to_engine_->Send(std::move(command))) << "more traffic to an engine than its bounds allow";
}

void EngineLink::Handle(EngineReport report) {
  switch (report.kind) {
    case EngineReport::Kind::kPin:
      return handlers_.pin(report.token, report.id);
    case EngineReport::Kind::kUnpin:
      return handlers_.unpin(report.token);
    case EngineReport::Kind::kReserve:
      return HandleReserve(report);
    case EngineReport::Kind::kPullDone: {
      auto pull = pulls_.find(report.token);
      CHECK(pull != pulls_.end());
      const PullHandlers handlers = std::move(pull->second);
      pulls_.erase(pull);
      return handlers.done(report.status, report.report);
    }
    case EngineReport::Kind::kCallDone: {
      auto call = calls_.find(report.token);
      CHECK(call != calls_.end());
      const CallCallback done = std::move(call->second);
      calls_.erase(call);
      if (!report.status.ok()) return done(report.status);
      return done(absl::MakeConstSpan(report.bytes));
    }
    case EngineReport::Kind::kCalled:
      return handlers_.call(report.bytes, [this, token = report.token](absl::Span<const uint8_t> reply) {
        EngineCommand command;
        command.kind = EngineCommand::Kind::kReply;
        command.token = token;
        command.bytes.assign(reply.begin(), reply.end());
        Send(std::move(command));
      });
    case EngineReport::Kind::kNone:
      break;
  }
}

void EngineLink::HandleReserve(const EngineReport& report) {
  const auto pull = pulls_.find(report.token);
  CHECK(pull != pulls_.end());
  const absl::StatusOr<absl::Span<uint8_t>> memory = pull->second.reserve(report.size);
  EngineCommand command;
  command.kind = EngineCommand::Kind::kReserved;
  command.token = report.token;
  command.status = memory.status();
  if (memory.ok()) command.memory = *memory;
  Send(std::move(command));
}

// ---- engine loop

// Where a pull lands: memory that came with it, or that the control loop is asked for.
class EngineHost::PullSink final : public transport::Sink {
 public:
  PullSink(EngineHost& host, uint64_t token, bool has_memory, absl::Span<uint8_t> memory)
      : host_(host), token_(token), has_memory_(has_memory), memory_(memory) {
    host_.sinks_.emplace(token_, this);
  }
  ~PullSink() override {
    host_.sinks_.erase(token_);
    host_.pulls_.erase(token_);
  }

  void Reserve(const transport::ObjectSize& size, ReserveCallback done) override {
    done_ = std::move(done);
    if (has_memory_) {
      posted_ = host_.loop_.Post([this, total = size.total()] {
        if (total != memory_.size()) {
          return Answer(absl::FailedPreconditionError("the holder's object has another size than the directory says"));
        }
        Answer(memory_);
      });
      return;
    }
    EngineReport report;
    report.kind = EngineReport::Kind::kReserve;
    report.token = token_;
    report.size = size;
    host_.Send(std::move(report));
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
    host_.Send(std::move(report));
  }

 private:
  EngineHost& host_;
  const uint64_t token_;
  const bool has_memory_;
  const absl::Span<uint8_t> memory_;
  ReserveCallback done_;
  base::Timer posted_;
};

EngineHost::EngineHost(base::EventLoop& engine_loop, EngineLink& link)
    : loop_(engine_loop),
      link_(link),
      from_control_(engine_loop, kEngineMailbox, [this](EngineCommand command) { Handle(std::move(command)); }) {}

absl::StatusOr<std::unique_ptr<EngineHost>> EngineHost::Open(base::EventLoop& engine_loop, EngineLink& link,
                                                             verbs::Device& device, verbs::ProtectionDomain& domain,
                                                             transport::Registration& registration,
                                                             const verbs::Address& listen, base::Random random,
                                                             base::Trace& trace,
                                                             const transport::EndpointOptions& options) {
  if (options.max_transfers > kMaxEnginePulls) {
    return absl::InvalidArgumentError("an engine serves and pulls at most 1024 transfers at once");
  }
  auto host = std::unique_ptr<EngineHost>(new EngineHost(engine_loop, link));
  auto endpoint = transport::Endpoint::Open(engine_loop, device, domain, registration, *host, random, trace, options);
  if (!endpoint.ok()) return endpoint.status();
  host->endpoint_ = *std::move(endpoint);
  if (absl::Status status = host->endpoint_->Listen(listen); !status.ok()) return status;
  host->endpoint_->SetCallHandler([host = host.get()](absl::Span<const uint8_t> request, auto reply) {
    EngineReport report;
    report.kind = EngineReport::Kind::kCalled;
    report.token = ++host->last_call_;
    report.bytes.assign(request.begin(), request.end());
    host->replies_.emplace(report.token, std::move(reply));
    host->Send(std::move(report));
  });
  link.to_engine_ = &host->from_control_;
  link.address_ = host->endpoint_->address();
  link.max_call_size_ = host->endpoint_->max_call_size();
  return host;
}

EngineHost::~EngineHost() {
  link_.to_engine_ = nullptr;
  endpoint_.reset();
}

void EngineHost::Send(EngineReport report) {
  CHECK(link_.from_engine_.Send(std::move(report))) << "more traffic from an engine than its bounds allow";
}

void EngineHost::Handle(EngineCommand command) {
  switch (command.kind) {
    case EngineCommand::Kind::kPull:
      return HandlePull(std::move(command));
    case EngineCommand::Kind::kCancel:
      if (const auto pull = pulls_.find(command.token); pull != pulls_.end()) endpoint_->CancelPull(pull->second);
      return;
    case EngineCommand::Kind::kPinned: {
      const auto pin = pins_.find(command.token);
      if (pin == pins_.end()) return;  // given back while it was asked for
      const PinCallback done = std::move(pin->second);
      pins_.erase(pin);
      if (!command.status.ok()) return done(command.status);
      return done(command.pinned);
    }
    case EngineCommand::Kind::kReserved: {
      const auto sink = sinks_.find(command.token);
      if (sink == sinks_.end()) return;  // the transfer ended before its memory came
      if (!command.status.ok()) return sink->second->Answer(command.status);
      return sink->second->Answer(command.memory);
    }
    case EngineCommand::Kind::kCall:
      return endpoint_->Call(command.peer, command.bytes, command.deadline,
                             [this, token = command.token](absl::StatusOr<absl::Span<const uint8_t>> reply) {
                               EngineReport report;
                               report.kind = EngineReport::Kind::kCallDone;
                               report.token = token;
                               report.status = reply.status();
                               if (reply.ok()) report.bytes.assign(reply->begin(), reply->end());
                               Send(std::move(report));
                             });
    case EngineCommand::Kind::kReply: {
      const auto reply = replies_.find(command.token);
      if (reply == replies_.end()) return;
      const transport::Endpoint::Reply answer = std::move(reply->second);
      replies_.erase(reply);
      return answer(command.bytes);
    }
    case EngineCommand::Kind::kNone:
      break;
  }
}

void EngineHost::HandlePull(EngineCommand command) {
  const bool has_memory = command.pull.size_known;
  auto sink = std::make_unique<PullSink>(*this, command.token, has_memory, command.memory);
  pulls_[command.token] = endpoint_->StartPull(command.pull, std::move(sink));
}

void EngineHost::Pin(const base::ObjectId& id, transport::PinId pin, PinCallback done) {
  pins_.emplace(pin, std::move(done));
  EngineReport report;
  report.kind = EngineReport::Kind::kPin;
  report.token = pin;
  report.id = id;
  Send(std::move(report));
}

void EngineHost::Unpin(transport::PinId pin) {
  pins_.erase(pin);
  EngineReport report;
  report.kind = EngineReport::Kind::kUnpin;
  report.token = pin;
  Send(std::move(report));
}

}  // namespace tokamak::node
