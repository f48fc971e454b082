#include "lib/verbs/ibv/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/ibv/translation/errors.h"

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
  std::unique_ptr<IbvQueuePair> made(new IbvQueuePair(std::move(domain), std::move(calls), options, send_queue->core(),
                                                      receive_queue->core(), std::move(shared)));
  if (absl::Status s = made->Create(options); !s.ok()) return s;
  return made;
}

IbvQueuePair::IbvQueuePair(std::shared_ptr<Domain> domain, std::shared_ptr<CallThread> calls,
                           const QueuePairOptions& options, std::shared_ptr<CompletionCore> sends_done,
                           std::shared_ptr<CompletionCore> receives_done, std::shared_ptr<SharedReceivesCore> shared)
    : domain_(std::move(domain)),
      calls_(std::move(calls)),
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
  provider_ = std::make_shared<ProviderQueuePair>(domain_->pd(), wanted, InitStep(context().port(), remote_access_));
  if (absl::Status s = domain_->Add(*this); !s.ok()) return s;
  if (shared_ != nullptr) shared_->Add(*this);
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
    sends_done_->Add(*this);
    if (receives_done_ != sends_done_) receives_done_->Add(*this);
    if (shared_ != nullptr) shared_->slots.AddOwner(number_);
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
    sends_done_->Remove(*this);
    receives_done_->Remove(*this);
  }
  if (shared_ != nullptr) shared_->Remove(*this);
  // Some providers take its completions away with it, and some do not.
  if (queue_pair_ != nullptr) receives_done_->Forget(*this, /*for_good=*/false);
  const int error = provider_->Destroy();
  LOG_IF(ERROR, error != 0) << "ibv_destroy_qp: " << std::strerror(error);
  if (queue_pair_ == nullptr) return;
  sends_done_->Forget(*this, /*for_good=*/true);
  if (receives_done_ != sends_done_) receives_done_->Forget(*this, /*for_good=*/true);
  if (shared_ != nullptr) shared_->slots.RemoveOwner(number_);
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
  const bool receive = (done.wr_id & kReceiveMark) != 0;
  if (receive && done.status == IBV_WC_SUCCESS) NoticeConnected();
  const uint64_t place = done.wr_id & ~kReceiveMark;
  if (receive && shared_ != nullptr) {
    const std::optional<uint64_t> id = shared_->slots.Release(static_cast<uint32_t>(place), number_);
    to->id = id.value_or(0);
    return id.has_value();
  }
  WorkRing& ring = receive ? receives_ : sends_;
  if (!ring.Holds(place)) return false;
  to->id = ring.id(place);
  if (done.status == IBV_WC_SUCCESS && ring.telling(place) == Telling::kRead) to->opcode = CompletionOpcode::kRead;
  ring.Release(place);
  return true;
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
  if (gone) FlushOutstanding();
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
      WalkedQueuePair::Facts{context().link(), remote_access_, shared_ != nullptr});
}

void IbvQueuePair::WasConnected(std::optional<uint8_t> reads) {
  if (state_.load() == QueuePairState::kError) return;
  Enter(QueuePairState::kReadyToSend);
  if (gate_ != nullptr && reads.has_value()) gate_->Open(*reads);
}

void IbvQueuePair::WasWalked() {
  if (!provider_->ended()) return;
  if (!over_) Enter(QueuePairState::kError);
  if (provider_->lost()) FlushOutstanding();
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
  if (ends && queue_pair_ != nullptr && context().link() == LinkKind::kIwarp) FlushOutstanding();
  if (state == QueuePairState::kReset) {
    // Drops all posted requests, and their waiting completions.
    state_ = QueuePairState::kError;
    sends_done_->Forget(*this, /*for_good=*/false);
    if (receives_done_ != sends_done_) receives_done_->Forget(*this, /*for_good=*/false);
    sends_.Clear();
    receives_.Clear();
    if (shared_ != nullptr) shared_->slots.AddOwner(number_);
    life_ = std::make_shared<QueuePairLife>();
  }
  state_ = state;
}

// Another thread, or the device when it was asked, may have ended it (Fail): requests posted before
// come back first.
void IbvQueuePair::NoticeError() {
  if (state_.load(std::memory_order_relaxed) == QueuePairState::kError && !over_) Enter(QueuePairState::kError);
}

// Flushes all posted and unpolled requests, behind the provider's completions: a lost device
// reports nothing any more, and iWARP's forget requests posted after an unnoticed end. A late
// completion of the provider is not reported twice.
void IbvQueuePair::FlushOutstanding() {
  for (uint64_t at = sends_.released(); at < sends_.posted(); ++at) sends_done_->AddFlush(number_, at);
  if (shared_ != nullptr) return;
  for (uint64_t at = receives_.released(); at < receives_.posted(); ++at) {
    receives_done_->AddFlush(number_, kReceiveMark | at);
  }
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
    if (status.ok() && sends_.room() == batch.size()) status = QueueFull(sends_.depth());
    if (status.ok() && request.opcode == Opcode::kBindWindow) {
      status = PostBind(request, &result);
    } else if (status.ok()) {
      AddSend(request, sends_.Note(static_cast<uint32_t>(batch.size()), request.id), /*never_none=*/false, &batch);
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
    if (result.status.ok() && sends_.room() == 0) result.status = QueueFull(sends_.depth());
    if (!result.status.ok()) break;
    gate_->Add(request, sends_.Note(0, request.id, TellingOf(request)));
    sends_.Commit(1);
    ++result.accepted;
  }
  LetThrough();
  return result;
}

// Gives the provider the requests that may pass the gate.
void IbvQueuePair::LetThrough() {
  const Quirks& quirks = context().quirks();
  SendBatch batch;
  while (gate_->Next() != nullptr) {
    for (const ReadGate::Waiting* next; (next = gate_->Next()) != nullptr; gate_->Pass()) {
      const SendRequest& request = next->request;
      if (!batch.HasRoomFor(std::max<size_t>(request.sges.size(), 1))) break;
      ibv_send_wr& to = AddSend(request, next->position, quirks.needs_a_piece, &batch);
      to.send_flags &= ~static_cast<unsigned int>(IBV_SEND_FENCE);
      if (sends_.telling(next->position) == Telling::kNothing) to.send_flags |= IBV_SEND_SIGNALED;
      if (quirks.garbles_empty_reads && IsEmptyRead(request)) to.opcode = IBV_WR_RDMA_WRITE;
    }
    ibv_send_wr* bad = batch.first();
    const int error = ibv_post_send(queue_pair_, batch.first(), &bad);
    const bool refused = batch.Accepted(error, bad) < batch.size();
    batch.Clear();
    if (!refused) continue;
    // It got no more than it has room for, so it has ended, or is broken.
    LOG(ERROR) << "ibv_post_send of queue pair " << number_ << ": " << std::strerror(std::abs(error));
    TellError();
    Enter(QueuePairState::kError);
  }
  AwaitReads(!gate_->empty());
}

void IbvQueuePair::AwaitReads(bool awaits) {
  if (awaits == awaits_reads_) return;
  awaits_reads_ = awaits;
  sends_done_->Await(awaits);
}

Telling IbvQueuePair::TellingOf(const SendRequest& request) const {
  const Quirks& quirks = context().quirks();
  if (quirks.garbles_empty_reads && IsEmptyRead(request)) return Telling::kRead;
  if ((request.flags & kSignaled) != 0) return Telling::kAsIs;
  if (request.opcode == Opcode::kRead) return Telling::kNothing;  // the gate waits for it
  uint64_t length = 0;
  for (const Sge& sge : request.sges) length += sge.length;
  const bool borrowed = quirks.borrows_unsignaled_from != 0 && length >= quirks.borrows_unsignaled_from;
  return borrowed ? Telling::kNothing : Telling::kAsIs;
}

bool IbvQueuePair::Arrived(const ibv_wc& done) {
  if ((done.wr_id & kReceiveMark) != 0 || !sends_.Holds(done.wr_id)) return false;
  if (done.status != IBV_WC_SUCCESS) {
    if (gate_ != nullptr) gate_->Close();
    AwaitReads(false);
    return false;
  }
  if (gate_ != nullptr && done.opcode == IBV_WC_RDMA_READ) {
    gate_->ReadCame();
    LetThrough();
  }
  return sends_.telling(done.wr_id) == Telling::kNothing;
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
  ibv_send_wr& to = AddSend(request, sends_.Note(0, request.id), /*never_none=*/false, &batch);
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
  if (shared_ != nullptr) {
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
    if (status.ok() && receives_.room() == batch.size()) status = QueueFull(receives_.depth());
    if (!status.ok()) {
      result.status = std::move(status);
      break;
    }
    const uint64_t position = receives_.Note(static_cast<uint32_t>(batch.size()), request.id);
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
    if (result.status.ok() && receives_.room() == 0) result.status = QueueFull(receives_.depth());
    if (result.status.ok() && adopted_) result.status = made_;
    if (!result.status.ok()) break;
    kept_receives_.push_back({receives_.Note(0, request.id), {request.sges.begin(), request.sges.end()}});
    receives_.Commit(1);
    ++result.accepted;
  }
  return result;
}

void IbvQueuePair::PostKept() {
  const std::vector<KeptReceive> kept = std::exchange(kept_receives_, {});
  ReceiveBatch batch;
  for (size_t next = 0; next < kept.size();) {
    for (; next < kept.size() && batch.HasRoomFor(std::max<size_t>(kept[next].sges.size(), 1)); ++next) {
      AddReceive({0, kept[next].sges}, kReceiveMark | kept[next].position, context().quirks().needs_a_piece, &batch);
    }
    ibv_recv_wr* bad = batch.first();
    const int error = ibv_post_recv(queue_pair_, batch.first(), &bad);
    const bool refused = batch.Accepted(error, bad) < batch.size();
    batch.Clear();
    if (!refused) continue;
    // It got no more than it has room for, so it has ended, or is broken.
    LOG(ERROR) << "ibv_post_recv of queue pair " << number_ << ": " << std::strerror(std::abs(error));
    TellError();
    Enter(QueuePairState::kError);
    return;
  }
}

absl::Status IbvQueuePair::PostBatch(SendBatch* batch, PostResult* result) {
  if (batch->empty()) return absl::OkStatus();
  ibv_send_wr* bad = batch->first();
  const int error = FlushesHere() ? ENOTCONN : ibv_post_send(queue_pair_, batch->first(), &bad);
  const size_t wanted = batch->size();
  const size_t accepted = batch->Accepted(error, bad);
  batch->Clear();
  return Posted(error, wanted, accepted, /*receives=*/false, result);
}

absl::Status IbvQueuePair::PostBatch(ReceiveBatch* batch, PostResult* result) {
  if (batch->empty()) return absl::OkStatus();
  ibv_recv_wr* bad = batch->first();
  const int error = FlushesHere() ? ENOTCONN : ibv_post_recv(queue_pair_, batch->first(), &bad);
  const size_t wanted = batch->size();
  const size_t accepted = batch->Accepted(error, bad);
  batch->Clear();
  return Posted(error, wanted, accepted, /*receives=*/true, result);
}

// Requests that the provider did not take come back flushed if the queue pair has ended; otherwise
// they are refused.
absl::Status IbvQueuePair::Posted(int error, size_t wanted, size_t accepted, bool receives, PostResult* result) {
  WorkRing& ring = receives ? receives_ : sends_;
  ring.Commit(static_cast<uint32_t>(accepted));
  result->accepted += accepted;
  if (accepted == wanted) return absl::OkStatus();
  if (state_.load() != QueuePairState::kError) {
    return ErrnoStatus(error, receives ? "ibv_post_recv" : "ibv_post_send");
  }
  CompletionCore& done = receives ? *receives_done_ : *sends_done_;
  for (size_t i = accepted; i < wanted; ++i) {
    done.AddFlush(number_, ring.posted() | (receives ? kReceiveMark : 0));
    ring.Commit(1);
  }
  result->accepted += wanted - accepted;
  return absl::OkStatus();
}

// iWARP's queue pairs take nothing once they have ended.
bool IbvQueuePair::FlushesHere() const {
  return context().link() == LinkKind::kIwarp && state_.load(std::memory_order_relaxed) == QueuePairState::kError;
}

}  // namespace tokamak::verbs::ibv
