#include "lib/cli/doctor/ping_pong.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "lib/cli/doctor/ping_pong_side.h"

namespace tokamak::cli::doctor {

namespace {

template <typename T>
T Median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The calling end, while it measures.
class Caller final {
 public:
  Caller(os::EpollLoop& loop, verbs::Device& device, const PingPongPlan& plan, const StepHandler& on_step)
      : loop_(loop), device_(device), plan_(plan), on_step_(on_step) {}

  absl::StatusOr<PingPongNumbers> Run(const verbs::Address& service) {
    absl::Status status = Connect(service);
    if (status.ok()) status = MeasureLatency();
    if (status.ok()) status = MeasureRate("write", verbs::Opcode::kWrite, side_->out(), &numbers_.write_rate);
    if (status.ok()) status = MeasureRate("read", verbs::Opcode::kRead, side_->in(), &numbers_.read_rate);
    if (status.ok()) status = Compare();
    if (!status.ok()) return status;
    return numbers_;
  }

 private:
  absl::Status Connect(const verbs::Address& service) {
    auto side = PingPongSide::Make(loop_, device_, on_step_, [this](const verbs::Completion& c) { OnCompletion(c); });
    if (!side.ok()) return side.status();
    side_ = *std::move(side);
    on_step_("connect");
    const base::Time began = loop_.Now();
    verbs::ConnectOptions options;
    options.reliability = side_->reliability();
    options.deadline = plan_.patience;
    auto connection = device_.connection_manager().Connect(
        side_->queue_pair(), service, options, [this](const verbs::ConnectionEvent& event) { OnConnection(event); });
    if (!connection.ok()) return connection.status();
    side_->connection() = *std::move(connection);
    // The device has the same deadline; one that does not keep it is found out a little later.
    if (auto s = Await("the connection", plan_.patience + base::Seconds(1), [this] { return connected_; }); !s.ok()) {
      return s;
    }
    numbers_.connected_in = loop_.Now() - began;
    side_->Drain();
    return absl::OkStatus();
  }

  void OnConnection(const verbs::ConnectionEvent& event) {
    if (event.kind != verbs::ConnectionEvent::Kind::kEstablished) {
      const absl::Status why = event.status.ok() ? absl::UnavailableError("no reason given") : event.status;
      return Fail(
          absl::Status(why.code(), absl::StrCat("connection ", verbs::ToString(event.kind), ": ", why.message())));
    }
    numbers_.path_mtu = event.path_mtu;
    const auto offer = Offer::Decode(event.private_data);
    if (!offer.ok()) return Fail(offer.status());
    offer_ = *offer;
    connected_ = true;
  }

  void OnCompletion(const verbs::Completion& completion) {
    if (completion.status != verbs::CompletionStatus::kSuccess) {
      return Fail(absl::UnavailableError(verbs::ToString(completion.status)));
    }
    if (completion.opcode != verbs::CompletionOpcode::kReceive) {
      ++completed_;
      return;
    }
    const absl::Span<const uint8_t> echo = side_->received(completion.id);
    if (!std::equal(echo.begin(), echo.end(), side_->message().begin())) {
      return Fail(absl::DataLossError("an echo came back with other bytes than were sent"));
    }
    ++echoes_;
    if (auto s = side_->Receive(completion.id); !s.ok()) Fail(s);
  }

  // The first of several failures is the cause, the others are flushes.
  void Fail(absl::Status status) {
    if (failure_.ok()) failure_ = std::move(status);
  }

  absl::Status Await(absl::string_view what, base::Duration patience, const std::function<bool()>& done) {
    const bool ended = loop_.RunUntil([&] { return !failure_.ok() || done(); }, loop_.Now() + patience);
    if (!failure_.ok()) return failure_;
    if (ended) return absl::OkStatus();
    return absl::DeadlineExceededError(
        absl::StrCat("waited ", base::FormatDuration(patience), " without success for ", what));
  }

  absl::Status MeasureLatency() {
    on_step_("send");
    std::vector<base::Duration> halves;
    const base::Time until = loop_.Now() + plan_.spend;
    for (uint32_t round = 0; round < plan_.rounds; ++round) {
      const absl::Span<uint8_t> message = side_->message();
      for (size_t i = 0; i < message.size(); ++i) message[i] = static_cast<uint8_t>(round + i);
      const base::Time began = loop_.Now();
      if (auto s = side_->Send(); !s.ok()) return s;
      // Both: the message's bytes are the device's until its SEND has completed.
      const auto answered = [&] { return echoes_ == round + 1 && completed_ == round + 1; };
      if (auto s = Await("the echo of a message", plan_.patience, answered); !s.ok()) return s;
      halves.push_back((loop_.Now() - began) / 2);
      if (loop_.Now() >= until) break;
    }
    numbers_.rounds = static_cast<uint32_t>(halves.size());
    numbers_.half_round_trip = Median(std::move(halves));
    return absl::OkStatus();
  }

  absl::Status MeasureRate(absl::string_view step, verbs::Opcode opcode, absl::Span<uint8_t> local, double* rate) {
    on_step_(step);
    const absl::Span<uint8_t> out = side_->out();
    for (size_t i = 0; i < out.size(); ++i) out[i] = Pattern(i);
    std::vector<double> rates;
    const base::Time until = loop_.Now() + plan_.spend;
    do {
      const base::Time began = loop_.Now();
      if (auto s = TransferBatch(step, opcode, local); !s.ok()) return s;
      rates.push_back(double{kTransfersPerBatch} * kTransferBytes / (loop_.Now() - began).seconds());
    } while (rates.size() < plan_.batches && loop_.Now() < until);
    if (opcode == verbs::Opcode::kWrite) numbers_.batches = static_cast<uint32_t>(rates.size());
    *rate = Median(std::move(rates));
    return absl::OkStatus();
  }

  absl::Status TransferBatch(absl::string_view step, verbs::Opcode opcode, absl::Span<uint8_t> local) {
    completed_ = 0;
    uint64_t posted = 0;
    const base::Time until = loop_.Now() + plan_.patience * 2;
    while (completed_ < kTransfersPerBatch) {
      while (posted < kTransfersPerBatch && posted - completed_ < kTransfersInFlight) {
        if (auto s = side_->Transfer(opcode, local, offer_); !s.ok()) return s;
        ++posted;
      }
      const uint64_t before = completed_;
      const std::string what = absl::StrCat("a ", step, " of ", base::FormatSize(kTransferBytes));
      const base::Duration left = std::min(plan_.patience, until - loop_.Now());
      if (auto s = Await(what, left, [&] { return completed_ > before; }); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status Compare() {
    on_step_("compare");
    const absl::Span<const uint8_t> in = side_->in();
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i] == Pattern(i)) continue;
      return absl::DataLossError(absl::StrCat("what was written and read back differs from byte ", i, " on"));
    }
    return absl::OkStatus();
  }

  static uint8_t Pattern(size_t i) { return static_cast<uint8_t>((i * 2654435761u) >> 13); }

  os::EpollLoop& loop_;
  verbs::Device& device_;
  const PingPongPlan plan_;
  const StepHandler& on_step_;
  PingPongNumbers numbers_;
  Offer offer_;
  bool connected_ = false;
  absl::Status failure_;
  uint64_t completed_ = 0;  // requests
  uint64_t echoes_ = 0;
  std::unique_ptr<PingPongSide> side_;  // last, so it goes first
};

}  // namespace

os::Detection MeasuringDetection(unsigned int processors) {
  return processors < 2 ? os::Detection::Event() : os::Detection::Adaptive(base::Microseconds(50));
}

unsigned int UsableProcessors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  // With more processors than the set holds there is more than one.
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return CPU_SETSIZE;
  return static_cast<unsigned int>(CPU_COUNT(&usable));
}

absl::StatusOr<std::unique_ptr<PingPongResponder>> PingPongResponder::Start(base::EventLoop& loop,
                                                                            verbs::Device& device) {
  std::unique_ptr<PingPongResponder> responder(new PingPongResponder(loop, device));
  auto listener = device.connection_manager().Listen(
      loop, device.address(), [self = responder.get()](std::unique_ptr<verbs::ConnectionRequest> request) {
        self->Accept(std::move(request));
      });
  if (!listener.ok()) return listener.status();
  responder->listener_ = *std::move(listener);
  return responder;
}

PingPongResponder::PingPongResponder(base::EventLoop& loop, verbs::Device& device) : loop_(loop), device_(device) {}

PingPongResponder::~PingPongResponder() = default;

void PingPongResponder::Accept(std::unique_ptr<verbs::ConnectionRequest> request) {
  const auto on_completion = [this](const verbs::Completion& completion) {
    // A failed request means that the caller is gone, or gives up: the caller knows why.
    if (completion.status != verbs::CompletionStatus::kSuccess) return;
    if (completion.opcode != verbs::CompletionOpcode::kReceive) return;
    const absl::Span<const uint8_t> asked = side_->received(completion.id);
    std::copy(asked.begin(), asked.end(), side_->message().begin());
    if (!side_->Receive(completion.id).ok()) return;
    established_ ? Echo() : void(echo_waits_ = true);
  };
  side_.reset();
  auto side = PingPongSide::Make(
      loop_, device_, [](absl::string_view) {}, on_completion);
  if (!side.ok()) return;  // dropping the request rejects it
  side_ = *std::move(side);
  std::array<uint8_t, Offer::kSize> offer;
  side_->offer().Encode(absl::MakeSpan(offer));
  verbs::ConnectOptions options;
  options.private_data = offer;
  options.reliability = side_->reliability();
  // A message may be here before the word that the connection stands, and is answered after it.
  established_ = echo_waits_ = false;
  const auto on_event = [this](const verbs::ConnectionEvent& event) {
    if (event.kind != verbs::ConnectionEvent::Kind::kEstablished) return;
    established_ = true;
    if (echo_waits_) Echo();
  };
  auto connection = request->Accept(side_->queue_pair(), options, on_event);
  if (!connection.ok()) {
    side_.reset();
    return;
  }
  side_->connection() = *std::move(connection);
  side_->Drain();  // which also arms
}

void PingPongResponder::Echo() {
  side_->Send().IgnoreError();  // what fails here, the caller misses
}

absl::StatusOr<PingPongNumbers> RunPingPong(os::EpollLoop& loop, verbs::Device& device, const verbs::Address& service,
                                            const PingPongPlan& plan, const StepHandler& on_step) {
  return Caller(loop, device, plan, on_step).Run(service);
}

}  // namespace tokamak::cli::doctor
