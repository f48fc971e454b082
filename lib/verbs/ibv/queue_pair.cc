#include "lib/verbs/ibv/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/ibv/translation/errors.h"
#include "lib/verbs/ibv/translation/manual_steps.h"

namespace tokamak::verbs::ibv {
namespace {

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
                                                                 std::shared_ptr<CallThread> calls,
                                                                 const QueuePairOptions& options) {
  const Context& context = domain->context();
  absl::StatusOr<CompletionPair> completions = CompletionPair::Of(options, context);
  if (!completions.ok()) return completions.status();
  if (absl::Status s = CheckOptions(options, context.limits()); !s.ok()) return s;
  std::shared_ptr<SharedReceivesCore> shared;
  if (options.shared_receives != nullptr) {
    const auto* queue = dynamic_cast<IbvSharedReceiveQueue*>(options.shared_receives);
    if (queue == nullptr || queue->core()->domain() != domain.get() || !queue->core()->BelongsTo(completions->loop())) {
      return absl::InvalidArgumentError("queue pairs share receives within one domain and one loop");
    }
    shared = queue->core();
  }
  std::unique_ptr<IbvQueuePair> made(
      new IbvQueuePair(std::move(domain), std::move(calls), options, *std::move(completions), std::move(shared)));
  if (absl::Status s = made->Create(options); !s.ok()) return s;
  return made;
}

IbvQueuePair::IbvQueuePair(std::shared_ptr<Domain> domain, std::shared_ptr<CallThread> calls,
                           const QueuePairOptions& options, CompletionPair completions,
                           std::shared_ptr<SharedReceivesCore> shared)
    : domain_(std::move(domain)),
      calls_(std::move(calls)),
      bounds_{options.max_sges, options.max_inline},
      remote_access_(options.remote_access),
      posted_(std::move(completions), std::move(shared), options.max_send_requests, options.max_receive_requests),
      gate_(context().quirks().breaks_fences
                ? std::make_unique<GatedSends>(context().quirks(), bounds_, posted_.sends())
                : nullptr),
      life_(std::make_shared<QueuePairLife>()) {}

absl::Status IbvQueuePair::Create(const QueuePairOptions& options) {
  SharedReceivesCore* const shared = posted_.shared();
  ibv_qp_init_attr wanted{};
  wanted.qp_context = static_cast<AsyncTarget*>(this);
  wanted.send_cq = posted_.completions().sends().queue();
  wanted.recv_cq = posted_.completions().receives().queue();
  wanted.srq = shared == nullptr ? nullptr : shared->queue();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = options.max_send_requests;
  wanted.cap.max_recv_wr = shared == nullptr ? std::max(options.max_receive_requests, 1u) : 0;
  wanted.cap.max_send_sge = std::max(options.max_sges, 1u);
  wanted.cap.max_recv_sge = shared == nullptr ? std::max(options.max_sges, 1u) : 0;
  wanted.cap.max_inline_data = options.max_inline;
  provider_ = std::make_shared<ProviderQueuePair>(domain_->pd(), wanted, InitStep(context().port(), remote_access_));
  if (absl::Status s = domain_->Add(*this); !s.ok()) return s;
  if (shared != nullptr) shared->Add(*this);
  if (!options.may_be_made_later) return Adopt();
  QueuePairState fresh = QueuePairState::kReset;  // another thread may have ended it
  state_.compare_exchange_strong(fresh, QueuePairState::kInit);
  inbox_.emplace(loop());
  calls_->Post([this, provider = provider_, to = inbox_->sender()] {
    (void)provider->Make();  // Adopt asks for the answer
    to.Send([this] { (void)Adopt(); });
  });
  return absl::OkStatus();
}

// Adopts what the provider made as this queue pair, and makes it now if that was not done yet.
absl::Status IbvQueuePair::Adopt() {
  if (adopted_) return made_;
  adopted_ = true;
  made_ = provider_->Make();
  if (made_.ok()) {
    queue_pair_ = provider_->get();
    number_ = provider_->number();
    posted_.completions().Add(*this);
    posted_.Begin(number_);
    QueuePairState fresh = QueuePairState::kReset;
    state_.compare_exchange_strong(fresh, QueuePairState::kInit);
    PostKept();
  } else {
    Enter(QueuePairState::kError);
  }
  if (when_made_) std::exchange(when_made_, nullptr)(made_);
  return made_;
}

IbvQueuePair::~IbvQueuePair() {
  if (provider_ == nullptr) return;
  CHECK(!held_) << "a queue pair outlives its connection";
  domain_->Remove(*this);
  // In Error it ends its running requests, and gives back its receives of a shared queue.
  TellError();
  if (queue_pair_ != nullptr) {
    Enter(QueuePairState::kError);
    posted_.completions().Remove(*this);
  }
  if (posted_.shared() != nullptr) posted_.shared()->Remove(*this);
  // Some providers take its completions away with it, and some do not.
  if (queue_pair_ != nullptr) posted_.completions().receives().Forget(*this, /*for_good=*/false);
  const int error = provider_->Destroy();
  LOG_IF(ERROR, error != 0) << "ibv_destroy_qp: " << std::strerror(error);
  if (queue_pair_ == nullptr) return;
  posted_.completions().Forget(*this, /*for_good=*/true);
  posted_.End();
}

uint32_t IbvQueuePair::number() const {
  if (number_ != 0) return number_;
  (void)provider_->Make();
  return provider_->number();
}

QueuePairState IbvQueuePair::state() const {
  const QueuePairState known = state_.load();
  const bool asked = known == QueuePairState::kInit || known == QueuePairState::kReadyToReceive ||
                     known == QueuePairState::kReadyToSend;
  // siw does not report it.
  if (!asked || queue_pair_ == nullptr || context().link() == LinkKind::kIwarp) return known;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr unused{};
  if (ibv_query_qp(queue_pair_, &attributes, IBV_QP_STATE, &unused) != 0) return known;
  if (StateOf(attributes.qp_state) != QueuePairState::kError) return known;
  life_->over = true;
  state_ = QueuePairState::kError;
  return QueuePairState::kError;
}

bool IbvQueuePair::Finish(const ibv_wc& done, Completion* to) {
  if (done.status != IBV_WC_SUCCESS && !over_) {
    TellError();
    Enter(QueuePairState::kError);
  }
  if (done.status == IBV_WC_SUCCESS && (done.wr_id & kReceiveMark) != 0) NoticeConnected();
  return posted_.Finish(done, to);
}

// The peer's first message may precede the thread's word that the connection stands: it may be
// answered at once. (iWARP's has one READ at a time, until that word allows more.)
void IbvQueuePair::NoticeConnected() {
  const QueuePairState known = state_.load(std::memory_order_relaxed);
  if (known != QueuePairState::kInit && known != QueuePairState::kReadyToReceive) return;
  if (context().link() != LinkKind::kIwarp && !provider_->ready()) return;
  Enter(QueuePairState::kReadyToSend);
  if (gate_ != nullptr) gate_->Open(1);
}

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
  if (absl::Status s = Adopt(); !s.ok()) return s;
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
  if (!IsStepForward(from, to)) {
    return absl::FailedPreconditionError(absl::StrCat("no step from ", ToString(from), " to ", ToString(to)));
  }
  if (to == QueuePairState::kInit) {
    const ibv::Step init = InitStep(context().port(), attributes.remote_access);
    if (absl::Status s = Walk(init.attributes, init.mask); !s.ok()) return s;
    remote_access_ = attributes.remote_access;
    return absl::OkStatus();
  }
  const absl::StatusOr<Agreement> agreement = AgreementOf(attributes, limits);
  if (!agreement.ok()) return agreement.status();
  PeerPort peer;
  peer.gid = attributes.peer.ip;
  const LocalPort port = context().PortNow();
  const absl::StatusOr<ibv::Step> step = to == QueuePairState::kReadyToReceive
                                             ? ReadyToReceiveStep(port, peer, *agreement)
                                             : ReadyToSendStep(port, *agreement);
  if (!step.ok()) return step.status();
  return Walk(step->attributes, step->mask);
}

absl::Status IbvQueuePair::Walk(ibv_qp_attr attributes, int mask) {
  const QueuePairState to = StateOf(attributes.qp_state);
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
  const int error = provider_->Walk(attributes, mask);
  const bool gone = error == EIO || error == ENODEV;
  if (error != 0 && !(gone && moves && to == QueuePairState::kError)) {
    return ErrnoStatus(error, absl::StrCat("ibv_modify_qp to ", ToString(to)));
  }
  if (moves) Enter(to);
  if (gone) posted_.FlushAll();
  return absl::OkStatus();
}

// ---- Connections, which are made on another thread.

bool IbvQueuePair::Hold() {
  if (held_) return false;
  held_ = true;
  return true;
}

void IbvQueuePair::Release() {
  held_ = false;
  when_made_ = nullptr;
}

void IbvQueuePair::WhenMade(std::function<void(const absl::Status&)> made) {
  if (adopted_) return made(made_);
  when_made_ = std::move(made);
}

std::unique_ptr<WalkedQueuePair> IbvQueuePair::ForWalking(os::EpollLoop& there,
                                                          std::shared_ptr<ProviderQueuePair::Walker> walker) const {
  return std::make_unique<WalkedQueuePair>(
      there, provider_, std::move(walker),
      WalkedQueuePair::Facts{context().link(), remote_access_, posted_.shared() != nullptr});
}

void IbvQueuePair::WasConnected(std::optional<uint8_t> reads) {
  if (state_.load() == QueuePairState::kError) return;
  Enter(QueuePairState::kReadyToSend);
  if (gate_ != nullptr && reads.has_value()) gate_->Open(*reads);
}

void IbvQueuePair::WasWalked() {
  if (!provider_->ended()) return;
  if (!over_) Enter(QueuePairState::kError);
  if (provider_->lost()) posted_.FlushAll();
}

void IbvQueuePair::EndConnection() {
  if (!adopted_) {
    TellError();
    state_ = QueuePairState::kError;
    return;
  }
  if (queue_pair_ == nullptr) return;
  const ibv::Step error = ErrorStep();
  if (absl::Status status = Walk(error.attributes, error.mask); !status.ok()) {
    LOG(WARNING) << "queue pair " << number_ << " to Error: " << status;
  }
}

void IbvQueuePair::Enter(QueuePairState state) {
  if (state == QueuePairState::kError || state == QueuePairState::kReset) life_->over = true;
  const bool ends = state == QueuePairState::kError && !over_;
  over_ = state == QueuePairState::kError;
  if (over_ && gate_ != nullptr) gate_->Close();
  AwaitReads(false);
  if (ends && queue_pair_ != nullptr && context().link() == LinkKind::kIwarp) posted_.FlushAll();
  if (state == QueuePairState::kReset) {
    // Drops all posted requests, and their waiting completions.
    state_ = QueuePairState::kError;
    posted_.completions().Forget(*this, /*for_good=*/false);
    posted_.Reset();
    life_ = std::make_shared<QueuePairLife>();
  }
  state_ = state;
}

// Another thread, or the device when it was asked, may have ended it (Fail): requests posted before
// come back first.
void IbvQueuePair::NoticeError() {
  if (state_.load(std::memory_order_relaxed) == QueuePairState::kError && !over_) Enter(QueuePairState::kError);
}

// From any thread. Ignores that it was in Error already, or that the device is gone.
void IbvQueuePair::TellError() {
  const ibv::Step error = ErrorStep();
  (void)provider_->Walk(error.attributes, error.mask);
}

// ---- How requests get to the provider, and back if it refuses them.

PostResult IbvQueuePair::PostSend(absl::Span<const SendRequest> requests) {
  PostResult result;
  const QueuePairState now = state_.load(std::memory_order_relaxed);
  if (queue_pair_ == nullptr || (now != QueuePairState::kReadyToSend && now != QueuePairState::kError)) {
    result.status = absl::FailedPreconditionError(absl::StrCat("a queue pair in ", ToString(now), " cannot send"));
    return result;
  }
  NoticeError();
  if (gate_ != nullptr && !FlushesHere()) return PostThroughGate(requests);
  const Limits& limits = context().limits();
  SendBatch batch;
  for (const SendRequest& request : requests) {
    absl::Status status = CheckSend(request, limits, bounds_);
    if (status.ok() && (request.opcode == Opcode::kBindWindow || !batch.HasRoomFor(request.sges.size()))) {
      status = PostBatch(&batch, &result);
    }
    if (status.ok() && posted_.sends().room() == batch.size()) status = QueueFull(posted_.sends().depth());
    if (status.ok() && request.opcode == Opcode::kBindWindow) {
      status = PostBind(request, &result);
    } else if (status.ok()) {
      AddSend(request, posted_.sends().Note(static_cast<uint32_t>(batch.size()), request.id), /*never_none=*/false,
              &batch);
    }
    if (!status.ok()) {
      result.status = std::move(status);
      break;
    }
  }
  if (absl::Status status = PostBatch(&batch, &result); !status.ok()) result.status = std::move(status);
  return result;
}

// A waiting request is accepted: it is never refused later, but flushed if the queue pair ends
// first.
PostResult IbvQueuePair::PostThroughGate(absl::Span<const SendRequest> requests) {
  PostResult result;
  for (const SendRequest& request : requests) {
    result.status = CheckSend(request, context().limits(), bounds_);
    if (result.status.ok() && posted_.sends().room() == 0) result.status = QueueFull(posted_.sends().depth());
    if (!result.status.ok()) break;
    gate_->Add(request);
    ++result.accepted;
  }
  LetThrough();
  return result;
}

// Gives the provider the requests that may pass the gate.
void IbvQueuePair::LetThrough() {
  if (const int error = gate_->LetThrough(queue_pair_); error != 0) EndRefused("ibv_post_send", error);
  AwaitReads(!gate_->empty());
}

void IbvQueuePair::AwaitReads(bool awaits) {
  if (awaits == awaits_reads_) return;
  awaits_reads_ = awaits;
  posted_.completions().sends().Await(awaits);
}

bool IbvQueuePair::Arrived(const ibv_wc& done) {
  if (gate_ == nullptr || (done.wr_id & kReceiveMark) != 0 || !posted_.sends().Holds(done.wr_id)) return false;
  if (done.status != IBV_WC_SUCCESS) {
    gate_->Close();
    AwaitReads(false);
    return false;
  }
  if (gate_->Done(done)) LetThrough();
  return gate_->IsUnasked(done);
}

// A batch of its own: the key after it counts for the next one, which may bind the same window
// again.
absl::Status IbvQueuePair::PostBind(const SendRequest& request, PostResult* result) {
  auto* const window = dynamic_cast<IbvMemoryWindow*>(request.bind.window);
  const auto* const region = dynamic_cast<const IbvMemoryRegion*>(request.bind.region);
  if (window == nullptr || region == nullptr || &window->domain()->context() != &context() ||
      &region->domain()->context() != &context()) {
    return absl::InvalidArgumentError("a bind needs a window and a region of its queue pair's device");
  }
  SendBatch batch;
  ibv_send_wr& to = AddSend(request, posted_.sends().Note(0, request.id), /*never_none=*/false, &batch);
  if (absl::Status s = window->PrepareBind(request, life_, &to); !s.ok()) return s;
  if (absl::Status s = PostBatch(&batch, result); !s.ok()) return s;
  window->Posted(to.bind_mw.rkey);
  return absl::OkStatus();
}

PostResult IbvQueuePair::PostReceive(absl::Span<const ReceiveRequest> requests) {
  PostResult result;
  if (state_.load(std::memory_order_relaxed) == QueuePairState::kReset) {
    result.status = absl::FailedPreconditionError("a queue pair in Reset takes no receives");
    return result;
  }
  if (posted_.shared() != nullptr) {
    result.status = absl::InvalidArgumentError("the receives of this queue pair are those of its shared queue");
    return result;
  }
  if (queue_pair_ == nullptr) return KeepReceives(requests);
  NoticeError();
  const Limits& limits = context().limits();
  const bool never_none = context().quirks().needs_a_piece;
  ReceiveBatch batch;
  for (const ReceiveRequest& request : requests) {
    absl::Status status = CheckReceive(request, limits, bounds_);
    if (status.ok() && !batch.HasRoomFor(std::max<size_t>(request.sges.size(), 1))) {
      status = PostBatch(&batch, &result);
    }
    if (status.ok() && posted_.receives().room() == batch.size()) status = QueueFull(posted_.receives().depth());
    if (!status.ok()) {
      result.status = std::move(status);
      break;
    }
    const uint64_t position = posted_.receives().Note(static_cast<uint32_t>(batch.size()), request.id);
    AddReceive(request, kReceiveMark | position, never_none, &batch);
  }
  if (absl::Status status = PostBatch(&batch, &result); !status.ok()) result.status = std::move(status);
  // Some providers (rxe) miss receives that come after the end: a second step to Error flushes
  // them.
  if (result.accepted > 0 && state_.load() == QueuePairState::kError && !FlushesHere()) TellError();
  return result;
}

// Keeps receives until there is a queue pair for them.
PostResult IbvQueuePair::KeepReceives(absl::Span<const ReceiveRequest> requests) {
  PostResult result;
  for (const ReceiveRequest& request : requests) {
    result.status = CheckReceive(request, context().limits(), bounds_);
    if (result.status.ok() && posted_.receives().room() == 0) result.status = QueueFull(posted_.receives().depth());
    if (result.status.ok() && adopted_) result.status = made_;
    if (!result.status.ok()) break;
    kept_receives_.Keep(request, posted_.receives().Note(0, request.id));
    posted_.receives().Commit(1);
    ++result.accepted;
  }
  return result;
}

void IbvQueuePair::PostKept() {
  const int error = kept_receives_.PostTo(queue_pair_, context().quirks().needs_a_piece);
  if (error != 0) EndRefused("ibv_post_recv", error);
}

// Ends with requests that were accepted here and refused by the provider.
void IbvQueuePair::EndRefused(const char* call, int error) {
  LOG(ERROR) << call << " of queue pair " << number_ << ": " << std::strerror(std::abs(error));
  TellError();
  Enter(QueuePairState::kError);
}

template <typename Request>
absl::Status IbvQueuePair::PostBatch(Batch<Request>* batch, PostResult* result) {
  if (batch->empty()) return absl::OkStatus();
  const Posted posted = FlushesHere() ? batch->Refuse(ENOTCONN) : batch->PostTo(queue_pair_);
  const bool ended = state_.load() == QueuePairState::kError;
  return posted_.Take(posted, /*receives=*/std::is_same_v<Request, ibv_recv_wr>, ended, result);
}

// iWARP's queue pairs take nothing once they have ended.
bool IbvQueuePair::FlushesHere() const {
  return context().link() == LinkKind::kIwarp && state_.load(std::memory_order_relaxed) == QueuePairState::kError;
}

}  // namespace tokamak::verbs::ibv
