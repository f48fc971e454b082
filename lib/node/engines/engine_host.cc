#include "lib/node/engines/engine_host.h"

#include <utility>
#include <vector>

#include "lib/node/calls/call_router.h"
#include "lib/node/engines/engine.h"

namespace tokamak::node {

// Where a pull lands: memory that came with it.
class EngineHost::PullSink final : public transport::Sink {
 public:
  PullSink(EngineHost& host, const PullCommand& command)
      : host_(host), token_(command.pull), memory_(command.memory), moved_(*command.moved) {}
  ~PullSink() override { host_.pulls_.erase(token_); }

  absl::Span<uint8_t> memory() const override { return memory_; }
  void Moved(uint64_t moved) override { moved_.store(moved, std::memory_order_relaxed); }

  void Done(const absl::Status& status, const transport::TransferReport& transfer) override {
    host_.Report(PullDoneReport{token_, status, transfer});
  }

 private:
  EngineHost& host_;
  const uint64_t token_;
  const absl::Span<uint8_t> memory_;
  std::atomic<uint64_t>& moved_;
};

// Dropped before the call was answered, it tells the control loop.
class EngineHost::Called final : public base::Handle {
 public:
  Called(EngineHost& host, uint64_t number) : host_(host), number_(number) {}
  ~Called() override {
    if (host_.replies_.erase(number_) > 0) host_.Report(CallCancelledReport{number_});
  }

 private:
  EngineHost& host_;
  const uint64_t number_;
};

EngineHost::EngineHost(base::EventLoop& engine_loop, ThreadedEngine& engine)
    : loop_(engine_loop),
      engine_(engine),
      from_control_(
          engine_loop, kEngineMailbox,
          [this](const EngineCommand& command) { std::visit([this](const auto& one) { Handle(one); }, command); }),
      to_control_(engine_loop, engine.from_engine_) {}

absl::StatusOr<std::unique_ptr<EngineHost>> EngineHost::Open(base::EventLoop& engine_loop, ThreadedEngine& engine,
                                                             const EndpointParts& parts) {
  auto host = std::unique_ptr<EngineHost>(new EngineHost(engine_loop, engine));
  auto endpoint = OpenEndpoint(engine_loop, *host, parts);
  if (!endpoint.ok()) return endpoint.status();
  host->endpoint_ = *std::move(endpoint);
  host->endpoint_->SetCallHandler([host = host.get()](absl::Span<const uint8_t> request, transport::Reply reply) {
    return host->HandleCalled(request, std::move(reply));
  });
  engine.HostOpened(host->from_control_, host->endpoint_->address(), host->endpoint_->max_call_size());
  return host;
}

EngineHost::~EngineHost() {
  if (endpoint_ == nullptr) return;  // it was never opened
  endpoint_.reset();
  engine_.HostEnded(to_control_.TakeWaiting());
}

void EngineHost::Handle(const DrainCommand&) {
  endpoint_->Drain([this] { Report(DrainedReport{}); });
}

// ---- what we ask of peers

void EngineHost::Handle(const PullCommand& command) {
  auto sink = std::make_unique<PullSink>(*this, command);
  pulls_[command.pull] = endpoint_->StartPull(command.request, std::move(sink));  // the sink ends in a task of its own
}

void EngineHost::Handle(const CancelPullCommand& command) {
  if (const auto pull = pulls_.find(command.pull); pull != pulls_.end()) endpoint_->CancelPull(pull->second);
}

void EngineHost::Handle(const CallCommand& command) {
  const auto end = [this, token = command.call](const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
    EndCall(token, reply);
  };
  calls_[command.call] = command.own ? endpoint_->CallFirst(command.peer, command.request, command.deadline, end)
                                     : endpoint_->Call(command.peer, command.request, command.deadline, end);
}

void EngineHost::Handle(const CancelCallCommand& command) {
  if (calls_.contains(command.call)) EndCall(command.call, absl::CancelledError("cancelled by the caller"));
}

void EngineHost::EndCall(uint64_t token, const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  calls_.erase(token);
  if (!reply.ok()) return Report(CallDoneReport{token, reply.status()});
  Report(CallDoneReport{token, ReplyBytes(reply->begin(), reply->end())});
}

// ---- what peers ask of us

base::Pending EngineHost::HandleCalled(absl::Span<const uint8_t> request, transport::Reply reply) {
  const size_t most = IsOfOwnLife(request) ? kMaxOwnReports : kMaxReportsWaiting;
  if (to_control_.waiting() >= most) return nullptr;  // a reply that is dropped tells the peer
  const uint64_t number = ++last_called_;
  const verbs::Address peer = reply.peer();
  replies_.emplace(number, std::move(reply));
  Report(CalledReport{number, {request.begin(), request.end()}, peer});
  return std::make_unique<Called>(*this, number);
}

void EngineHost::Handle(const ReplyCommand& command) {
  const auto reply = replies_.extract(command.called);
  if (reply.empty()) return;  // cancelled meanwhile
  if (command.reply.ok()) reply.mapped()(*command.reply);
}

void EngineHost::Pin(const base::ObjectVersion& version, transport::PinId pin, PinCallback done) {
  pins_.emplace(pin, std::move(done));
  if (to_control_.waiting() < kMaxReportsWaiting) return Report(PinReport{pin, version});
  refused_pins_.insert(pin);
  refusing_ = loop_.Post([this] { RefusePins(); });
}

void EngineHost::RefusePins() {
  for (const transport::PinId pin : std::exchange(refused_pins_, {})) {
    const auto asked = pins_.extract(pin);
    if (!asked.empty()) asked.mapped()(absl::ResourceExhaustedError("this node is asked for more than it can answer"));
  }
}

void EngineHost::Handle(const PinnedCommand& command) {
  const auto asked = pins_.extract(command.pin);
  if (!asked.empty()) asked.mapped()(command.object);  // else given back while it was asked for
}

void EngineHost::Unpin(transport::PinId pin) {
  pins_.erase(pin);
  if (refused_pins_.erase(pin) == 0) Report(UnpinReport{pin});
}

}  // namespace tokamak::node
