#include "lib/verbs/ibv/off_loop_connection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::verbs::ibv {

using Kind = ConnectionEvent::Kind;

absl::StatusOr<HeldIbvQueuePair> HoldQueuePair(QueuePair& queue_pair) {
  auto* const ours = dynamic_cast<IbvQueuePair*>(&queue_pair);
  if (ours == nullptr) return absl::InvalidArgumentError("the queue pair is none of this kind of device");
  if (const QueuePairState state = ours->known_state(); state != QueuePairState::kInit) {
    return absl::FailedPreconditionError(
        absl::StrCat("a queue pair in state ", ToString(state), ": a connection starts in Init"));
  }
  if (!ours->Hold()) return absl::FailedPreconditionError("this queue pair has a connection");
  return HeldIbvQueuePair(ours);
}

OffLoopConnection::OffLoopConnection(std::shared_ptr<CallThread> calls, HeldIbvQueuePair queue_pair, Side side,
                                     const Address& peer, const ConnectOptions& options, Begin begin,
                                     ConnectionHandler handler)
    : calls_(std::move(calls)),
      queue_pair_(std::move(queue_pair)),
      loop_(queue_pair_->loop()),
      side_(side),
      peer_(peer),
      options_(options),
      private_data_(options.private_data.begin(), options.private_data.end()),
      until_(loop_.Now() + options.deadline),
      begin_(std::move(begin)),
      handler_(std::move(handler)),
      walker_(std::make_shared<ProviderQueuePair::Walker>()),
      inbox_(loop_),
      deadline_(loop_.RunAt(until_, [this] { OnDeadline(); })) {
  options_.private_data = {};
  queue_pair_->WhenMade([this](const absl::Status& made) {
    if (made.ok()) return OnMade(made);
    next_ = loop_.Post([this, made] { OnMade(made); });
  });
}

OffLoopConnection::~OffLoopConnection() {
  walker_->Stop();
  if (!over_) queue_pair_->EndConnection();
  Leave();
}

void OffLoopConnection::OnMade(const absl::Status& made) {
  if (over_) return;
  if (!made.ok()) return OnTold({Kind::kUnreachable, made, {}, 0, {}});
  there_ = std::make_shared<There>();
  there_->queue_pair = queue_pair_->ForWalking(calls_->loop(), walker_);
  options_.deadline = std::max(until_ - loop_.Now(), base::Milliseconds(1));
  calls_->Post([this, there = there_, begin = std::exchange(begin_, nullptr), private_data = private_data_,
                options = options_, to = inbox_.sender()]() mutable {
    if (there->dropped.load()) return;
    options.private_data = private_data;
    WalkedQueuePair& queue_pair = *there->queue_pair;
    auto connection = begin(queue_pair, options, [this, to, &queue_pair](const ConnectionEvent& event) {
      const absl::Span<const uint8_t> bytes = event.private_data;
      Told told{event.kind,     event.status,       {bytes.begin(), bytes.end()},
                event.path_mtu, queue_pair.reads(), event.peer_queue_pair};
      to.Send([this, told = std::move(told)] { OnTold(told); });
    });
    if (connection.ok()) {
      there->connection = *std::move(connection);
    } else {
      to.Send([this, status = connection.status()] { OnTold({Kind::kUnreachable, status, {}, 0, {}}); });
    }
  });
}

void OffLoopConnection::OnDeadline() {
  const bool walked = walker_->Stop();
  // A queue pair that got no answer stays in Init, good for another attempt.
  if (walked || (side_ == Side::kPassive && there_ != nullptr)) queue_pair_->EndConnection();
  OnTold({Kind::kUnreachable,
          absl::DeadlineExceededError(absl::StrCat(peer_.ToString(), " did not answer in time")),
          {},
          0,
          {}});
}

void OffLoopConnection::OnTold(const Told& told) {
  if (over_) return;
  deadline_.Cancel();
  if (told.kind == Kind::kEstablished) {
    queue_pair_->WasConnected(told.reads);
  } else {
    over_ = true;
    queue_pair_->WasWalked();
    Leave();
  }
  Tell(told);
}

void OffLoopConnection::Tell(const Told& told) {
  ConnectionEvent event{};
  event.kind = told.kind;
  event.status = told.status;
  event.private_data = told.private_data;
  event.path_mtu = told.path_mtu;
  event.peer_queue_pair = told.peer_queue_pair;
  const base::Lifetime::Watch watch = lifetime_.Watched();
  ConnectionHandler handler = std::move(handler_);  // it may drop this
  handler(event);
  if (watch.over()) return;
  handler_ = std::move(handler);
}

// The thread drops its part, or the request that was to be answered.
void OffLoopConnection::Leave() {
  if (begin_) calls_->Post([begin = std::exchange(begin_, nullptr)]() mutable { begin = nullptr; });
  if (there_ == nullptr) return;
  there_->dropped = true;
  calls_->Post([there = std::move(there_)] {
    there->connection.reset();
    there->queue_pair.reset();
  });
}

}  // namespace tokamak::verbs::ibv
