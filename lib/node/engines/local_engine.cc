#include "lib/node/engines/local_engine.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::node {

class LocalEngine::Inside final {
 public:
  explicit Inside(LocalEngine& engine) : engine_(engine) { ++engine_.inside_; }
  ~Inside() { --engine_.inside_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  LocalEngine& engine_;
};

// Where a pull lands: memory that came with it.
class LocalEngine::PullSink final : public transport::Sink {
 public:
  PullSink(LocalEngine& engine, uint64_t token, absl::Span<uint8_t> memory, std::atomic<uint64_t>& moved)
      : engine_(engine), token_(token), memory_(memory), moved_(moved) {}

  absl::Span<uint8_t> memory() const override { return memory_; }
  void Moved(uint64_t moved) override { moved_.store(moved, std::memory_order_relaxed); }
  void Done(const absl::Status& status, const transport::TransferReport& report) override {
    const Inside inside(engine_);
    engine_.pulls_.End(token_, status, report);
  }

 private:
  LocalEngine& engine_;
  const uint64_t token_;
  const absl::Span<uint8_t> memory_;
  std::atomic<uint64_t>& moved_;
};

LocalEngine::LocalEngine(base::EventLoop& loop, size_t max_calls)
    : loop_(loop),
      handlers_(RefusalsOf(*this)),
      calls_(loop, max_calls, *this),
      pin_answers_(loop),
      peer_calls_(loop, [this](absl::Span<const uint8_t> request, transport::Reply reply) {
        const Inside inside(*this);
        return handlers_.call(request, std::move(reply));
      }) {}

absl::StatusOr<std::unique_ptr<LocalEngine>> LocalEngine::Open(base::EventLoop& loop, const EndpointParts& parts,
                                                               size_t max_calls) {
  auto engine = std::unique_ptr<LocalEngine>(new LocalEngine(loop, max_calls));
  auto endpoint = OpenEndpoint(loop, *engine, parts);
  if (!endpoint.ok()) return endpoint.status();
  engine->endpoint_ = *std::move(endpoint);
  engine->endpoint_->SetCallHandler([engine = engine.get()](absl::Span<const uint8_t> request, transport::Reply reply) {
    return engine->peer_calls_.Take(request, std::move(reply));
  });
  engine->address_ = engine->endpoint_->address();
  engine->calls_.Open(engine->endpoint_->max_call_size());
  return engine;
}

LocalEngine::~LocalEngine() { Close(); }

// ---- what the node asks of peers

absl::StatusOr<uint64_t> LocalEngine::Pull(const transport::PullRequest& request, absl::Span<uint8_t> memory,
                                           std::atomic<uint64_t>& moved, PullCallback done) {
  if (!open()) return EngineGone();
  if (absl::Status status = pulls_.CheckRoom(); !status.ok()) return status;
  EnginePulls::OnePull& pull = pulls_.Add(std::move(done));
  pull.transfer = endpoint_->StartPull(request, std::make_unique<PullSink>(*this, pull.token, memory, moved));
  return pull.token;
}

void LocalEngine::Cancel(uint64_t token) {
  const EnginePulls::OnePull* pull = pulls_.Find(token);
  if (pull != nullptr && open()) endpoint_->CancelPull(pull->transfer);
}

base::Pending LocalEngine::Send(const EngineCalls::Request& request) {
  if (!open()) return nullptr;
  const auto end = [this, call = request.call](const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
    const Inside inside(*this);
    calls_.End(call, reply);
  };
  return request.own ? endpoint_->CallFirst(request.peer, request.bytes, request.deadline, end)
                     : endpoint_->Call(request.peer, request.bytes, request.deadline, end);
}

bool LocalEngine::Cancel(uint64_t, base::Pending sent) {
  sent.reset();  // the endpoint cancels it, and forgets us
  return true;
}

// ---- what peers ask of the node

void LocalEngine::StopServing() {
  handlers_ = RefusalsOf(*this);
  peer_calls_.DropAll();
}

void LocalEngine::Pin(const base::ObjectVersion& version, transport::PinId pin, PinCallback done) {
  const Inside inside(*this);
  pins_.emplace(pin, AskedPin{std::move(done), nullptr});
  handlers_.pin(pin, version);
}

// Never inside Pin: the endpoint would not expect it.
void LocalEngine::Pinned(transport::PinId pin, absl::StatusOr<transport::PinnedObject> object) {
  const auto asked = pins_.find(pin);
  if (asked == pins_.end()) return;
  asked->second.answer = pin_answers_.Add([this, pin, object = std::move(object)] { AnswerPin(pin, object); });
}

void LocalEngine::AnswerPin(transport::PinId pin, const absl::StatusOr<transport::PinnedObject>& object) {
  const Inside inside(*this);
  const auto asked = pins_.extract(pin);
  asked.mapped().done(object);
}

void LocalEngine::Unpin(transport::PinId pin) {
  const Inside inside(*this);
  pins_.erase(pin);
  handlers_.unpin(pin);
}

// ---- the end

void LocalEngine::Drain(std::function<void()> done) {
  draining_.push_back(std::move(done));
  if (!open()) return EndSoon();
  endpoint_->Drain([this] {
    ++drained_;
    drain_answers_ = loop_.Post([this] { AnswerDrains(); });
  });
}

void LocalEngine::AnswerDrains() {
  const base::Lifetime::Watch watch = lifetime_.Watched();
  for (size_t left = std::exchange(drained_, 0); left > 0 && !draining_.empty(); --left) {
    const std::function<void()> done = std::move(draining_.front());
    draining_.erase(draining_.begin());
    done();  // may drop us
    if (watch.over()) return;
  }
}

void LocalEngine::Close() {
  if (!open()) return;
  CHECK_EQ(inside_, 0) << "a callback of an engine must not close it: the endpoint is still at work";
  calls_.Close();
  peer_calls_.DropAll();  // while the endpoint is whole
  const std::unique_ptr<transport::Endpoint> ending = std::move(endpoint_);
  EndSoon();
}

void LocalEngine::EndSoon() {
  ended_ = loop_.Post([this] { End(); });
}

void LocalEngine::End() {
  const base::Lifetime::Watch watch = lifetime_.Watched();
  pulls_.EndAll();  // a callback may drop us
  if (watch.over()) return;
  calls_.EndAll();
  if (watch.over()) return;
  for (const std::function<void()>& done : std::exchange(draining_, {})) {
    done();
    if (watch.over()) return;
  }
}

}  // namespace tokamak::node
