#include "lib/verbs/ibv/queue_pair.h"

#include <glog/logging.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/ibv/attributes.h"
#include "lib/verbs/ibv/errors.h"

namespace tokamak::verbs::ibv {
namespace {

QueuePairState FromWire(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return QueuePairState::kReset;
    case IBV_QPS_INIT:
      return QueuePairState::kInit;
    case IBV_QPS_RTR:
      return QueuePairState::kReadyToReceive;
    case IBV_QPS_RTS:
      return QueuePairState::kReadyToSend;
    default:
      return QueuePairState::kError;
  }
}

absl::Status CheckOptions(const QueuePairOptions& options, const Limits& limits) {
  if (options.max_send_requests == 0 || options.max_send_requests > limits.max_send_requests ||
      options.max_receive_requests > limits.max_receive_requests || options.max_sges > limits.max_sges ||
      options.max_inline > limits.max_inline) {
    return absl::InvalidArgumentError("a queue pair beyond the limits of its device");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<IbvQueuePair>> IbvQueuePair::Make(std::shared_ptr<Domain> domain,
                                                                 const QueuePairOptions& options) {
  const auto* send_queue = dynamic_cast<IbvCompletionQueue*>(options.send_queue);
  const auto* receive_queue = dynamic_cast<IbvCompletionQueue*>(options.receive_queue);
  const Context* const context = &domain->context();
  if (send_queue == nullptr || receive_queue == nullptr || send_queue->core()->context() != context ||
      receive_queue->core()->context() != context) {
    return absl::InvalidArgumentError("a queue pair needs completion queues of its own device");
  }
  if (&send_queue->core()->loop() != &receive_queue->core()->loop()) {
    return absl::InvalidArgumentError("both completion queues of a queue pair live on one loop");
  }
  if (absl::Status s = CheckOptions(options, context->limits()); !s.ok()) return s;
  std::shared_ptr<SharedReceivesCore> shared;
  if (options.shared_receives != nullptr) {
    const auto* queue = dynamic_cast<IbvSharedReceiveQueue*>(options.shared_receives);
    if (queue == nullptr || queue->core()->domain() != domain.get() ||
        !queue->core()->BelongsTo(receive_queue->core()->loop())) {
      return absl::InvalidArgumentError("queue pairs share receives within one domain and one loop");
    }
    shared = queue->core();
  }
  std::unique_ptr<IbvQueuePair> made(
      new IbvQueuePair(std::move(domain), options, send_queue->core(), receive_queue->core(), std::move(shared)));
  if (absl::Status s = made->Create(options); !s.ok()) return s;
  return made;
}

IbvQueuePair::IbvQueuePair(std::shared_ptr<Domain> domain, const QueuePairOptions& options,
                           std::shared_ptr<CompletionCore> sends_done, std::shared_ptr<CompletionCore> receives_done,
                           std::shared_ptr<SharedReceivesCore> shared)
    : domain_(std::move(domain)),
      sends_done_(std::move(sends_done)),
      receives_done_(std::move(receives_done)),
      shared_(std::move(shared)),
      bounds_{options.max_sges, options.max_inline},
      remote_access_(options.remote_access),
      sends_(options.max_send_requests),
      receives_(options.max_receive_requests),
      gate_(context().quirks().breaks_fences ? std::make_unique<ReadGate>(options.max_send_requests, bounds_)
                                             : nullptr),
      life_(std::make_shared<QueuePairLife>()) {}

absl::Status IbvQueuePair::Create(const QueuePairOptions& options) {
  ibv_qp_init_attr wanted{};
  wanted.qp_context = static_cast<AsyncTarget*>(this);
  wanted.send_cq = sends_done_->queue();
  wanted.recv_cq = receives_done_->queue();
  wanted.srq = shared_ == nullptr ? nullptr : shared_->queue();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = options.max_send_requests;
  wanted.cap.max_recv_wr = shared_ == nullptr ? std::max(options.max_receive_requests, 1u) : 0;
  wanted.cap.max_send_sge = std::max(options.max_sges, 1u);
  wanted.cap.max_recv_sge = shared_ == nullptr ? std::max(options.max_sges, 1u) : 0;
  wanted.cap.max_inline_data = options.max_inline;
  errno = 0;
  queue_pair_ = ibv_create_qp(domain_->pd(), &wanted);
  if (queue_pair_ == nullptr) return ErrnoStatus(errno == 0 ? EIO : errno, "ibv_create_qp");
  number_ = queue_pair_->qp_num;
  sends_done_->Add(*this);
  if (receives_done_ != sends_done_) receives_done_->Add(*this);
  if (shared_ != nullptr) shared_->Add(*this);
  const ibv::Step init = InitStep(context().port(), remote_access_);
  return Walk(init.attributes, init.mask);
}

IbvQueuePair::~IbvQueuePair() {
  if (queue_pair_ == nullptr) return;
  CHECK(!held_) << "a queue pair outlives its connection";
  // In Error it ends what it is at, and gives back what it took from a shared queue.
  TellError();
  Enter(QueuePairState::kError);
  sends_done_->Remove(*this);
  receives_done_->Remove(*this);
  if (shared_ != nullptr) shared_->Remove(*this);
  // Some providers take its completions away with it, and some do not.
  receives_done_->Forget(*this, /*for_good=*/false);
  const int error = ibv_destroy_qp(queue_pair_);
  LOG_IF(ERROR, error != 0) << "ibv_destroy_qp: " << std::strerror(std::abs(error));
  sends_done_->Forget(*this, /*for_good=*/true);
  if (receives_done_ != sends_done_) receives_done_->Forget(*this, /*for_good=*/true);
}

QueuePairState IbvQueuePair::state() const {
  const QueuePairState known = state_.load();
  const bool asked = known == QueuePairState::kInit || known == QueuePairState::kReadyToReceive ||
                     known == QueuePairState::kReadyToSend;
  // siw does not tell.
  if (!asked || context().link() == LinkKind::kIwarp) return known;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr unused{};
  if (ibv_query_qp(queue_pair_, &attributes, IBV_QP_STATE, &unused) != 0) return known;
  if (FromWire(attributes.qp_state) != QueuePairState::kError) return known;
  life_->over = true;
  state_ = QueuePairState::kError;
  return QueuePairState::kError;
}

bool IbvQueuePair::Finish(const ibv_wc& done, Completion* to) {
  if (done.status != IBV_WC_SUCCESS && !over_) {
    TellError();
    Enter(QueuePairState::kError);
  }
  const bool receive = (done.wr_id & kReceiveMark) != 0;
  const uint64_t place = done.wr_id & ~kReceiveMark;
  if (receive && shared_ != nullptr) {
    to->id = shared_->slots.Release(static_cast<uint32_t>(place));
    return true;
  }
  WorkRing& ring = receive ? receives_ : sends_;
  if (!ring.Holds(place)) return false;
  to->id = ring.id(place);
  if (done.status == IBV_WC_SUCCESS && ring.telling(place) == Telling::kRead) to->opcode = CompletionOpcode::kRead;
  ring.Release(place);
  return true;
}

// From any thread.
void IbvQueuePair::Fail() {
  state_ = QueuePairState::kError;
  TellError();
}

void IbvQueuePair::SharedQueueDropped() {
  TellError();
  Enter(QueuePairState::kError);
}

void IbvQueuePair::OnAsyncEvent(ibv_event_type) { Fail(); }

absl::Status IbvQueuePair::Modify(QueuePairState to, const QueuePairAttributes& attributes) {
  if (to == QueuePairState::kError) {
    const ibv::Step error = ErrorStep();
    return Walk(error.attributes, error.mask);
  }
  const Limits& limits = context().limits();
  if (!limits.manual_modify) {
    return absl::UnimplementedError("queue pairs of this device are walked by its connection manager only");
  }
  if (to == QueuePairState::kReset) {
    const ibv::Step reset = ResetStep();
    return Walk(reset.attributes, reset.mask);
  }
  const QueuePairState from = state();
  const bool legal = (to == QueuePairState::kInit && from == QueuePairState::kReset) ||
                     (to == QueuePairState::kReadyToReceive && from == QueuePairState::kInit) ||
                     (to == QueuePairState::kReadyToSend && from == QueuePairState::kReadyToReceive);
  if (!legal) return absl::FailedPreconditionError(absl::StrCat("no step from ", ToString(from), " to ", ToString(to)));
  if (to == QueuePairState::kInit) {
    const ibv::Step init = InitStep(context().port(), attributes.remote_access);
    if (absl::Status s = Walk(init.attributes, init.mask); !s.ok()) return s;
    remote_access_ = attributes.remote_access;
    return absl::OkStatus();
  }
  constexpr uint32_t k24Bits = 0xffffff;
  if (attributes.peer_number > k24Bits || attributes.receive_psn > k24Bits || attributes.send_psn > k24Bits) {
    return absl::InvalidArgumentError("queue pair numbers and PSNs have 24 bits");
  }
  if (attributes.reliability.reads_outstanding > limits.max_reads ||
      attributes.reliability.reads_served > limits.max_reads) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", limits.max_reads, " READs at once"));
  }
  Agreement agreement;
  agreement.peer_number = attributes.peer_number;
  agreement.receive_psn = attributes.receive_psn;
  agreement.send_psn = attributes.send_psn;
  agreement.path_mtu = attributes.path_mtu;
  agreement.reliability = attributes.reliability;
  PeerPort peer;
  peer.gid = attributes.peer.ip;
  const LocalPort port = context().PortNow();
  const absl::StatusOr<ibv::Step> step = to == QueuePairState::kReadyToReceive
                                             ? ReadyToReceiveStep(port, peer, agreement)
                                             : ReadyToSendStep(port, agreement);
  if (!step.ok()) return step.status();
  return Walk(step->attributes, step->mask);
}

absl::Status IbvQueuePair::Walk(ibv_qp_attr attributes, int mask) {
  const QueuePairState to = FromWire(attributes.qp_state);
  const QueuePairState from = state_.load();
  const bool moves = (mask & IBV_QP_STATE) != 0;
  if (moves && to == QueuePairState::kError) {
    if (over_ && context().link() == LinkKind::kIwarp) return absl::OkStatus();
    // libibverbs has no step from Reset to Error.
    if (from == QueuePairState::kReset) {
      const ibv::Step init = InitStep(context().port(), remote_access_);
      if (absl::Status s = Walk(init.attributes, init.mask); !s.ok()) return s;
    }
  }
  const int error = std::abs(ibv_modify_qp(queue_pair_, &attributes, mask));
  const bool gone = error == EIO || error == ENODEV;
  if (error != 0 && !(gone && moves && to == QueuePairState::kError)) {
    return ErrnoStatus(error, absl::StrCat("ibv_modify_qp to ", ToString(to)));
  }
  if (moves) Enter(to);
  if (gone) FlushOutstanding();
  return absl::OkStatus();
}

void IbvQueuePair::WasConnected(uint8_t reads) {
  Enter(QueuePairState::kReadyToSend);
  if (gate_ != nullptr) gate_->Open(reads);
}

bool IbvQueuePair::Hold() {
  if (held_) return false;
  held_ = true;
  return true;
}

void IbvQueuePair::Enter(QueuePairState state) {
  if (state == QueuePairState::kError || state == QueuePairState::kReset) life_->over = true;
  const bool ends = state == QueuePairState::kError && !over_;
  over_ = state == QueuePairState::kError;
  if (over_ && gate_ != nullptr) gate_->Close();
  AwaitReads(false);
  if (ends && context().link() == LinkKind::kIwarp) FlushOutstanding();
  if (state == QueuePairState::kReset) {
    // What was posted is forgotten, also what has completed and waits.
    state_ = QueuePairState::kError;
    sends_done_->Forget(*this, /*for_good=*/false);
    if (receives_done_ != sends_done_) receives_done_->Forget(*this, /*for_good=*/false);
    sends_.Clear();
    receives_.Clear();
    life_ = std::make_shared<QueuePairLife>();
  }
  state_ = state;
}

// Another thread, or the device when it was asked, may have said that it is over (Fail): what was posted before comes back first.
void IbvQueuePair::NoticeError() {
  if (state_.load(std::memory_order_relaxed) == QueuePairState::kError && !over_) Enter(QueuePairState::kError);
}

// All that was posted and not polled comes back flushed, after what the provider has of it: a lost device tells nothing any more, and
// iWARP's forget what was posted when they had ended unnoticed. What comes from the provider after all is not heard of twice.
void IbvQueuePair::FlushOutstanding() {
  for (uint64_t at = sends_.released(); at < sends_.posted(); ++at) sends_done_->AddFlush(number_, at);
  if (shared_ != nullptr) return;
  for (uint64_t at = receives_.released(); at < receives_.posted(); ++at) {
    receives_done_->AddFlush(number_, kReceiveMark | at);
  }
}

// From any thread. That it was in Error already, or that the device is gone, is no news.
void IbvQueuePair::TellError() {
  ibv::Step error = ErrorStep();
  (void)ibv_modify_qp(queue_pair_, &error.attributes, error.mask);
}

}  // namespace tokamak::verbs::ibv
