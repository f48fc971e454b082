#include "lib/verbs/kernel/user_queue_pair.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/log.h"
#include "lib/verbs/kernel/program/receive_wqe.h"
#include "lib/verbs/kernel/program/translate.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr uint32_t kPsnMask = 0xffffff;
constexpr uint8_t kPortOfQueuePair = 1;

// The completion reports which IP header a datagram had (A17.4.5.1). Hardware does so in these bits
// of the service level, which RoCE does not use otherwise, and UCX looks there.
constexpr uint8_t kFromIpv6 = 1;
constexpr uint8_t kFromIpv4 = 2;

bool Has(uint32_t mask, uint32_t attribute) { return (mask & attribute) != 0; }

SendFlags FlagsOf(uint32_t flags) {
  SendFlags ours = kSignaled;
  if (Has(flags, IBV_SEND_SOLICITED)) ours = ours | kSolicited;
  if (Has(flags, IBV_SEND_FENCE)) ours = ours | kFence;
  if (Has(flags, IBV_SEND_INLINE)) ours = ours | kInline;
  return ours;
}

}  // namespace

struct UserQueuePair::Batch {
  std::array<std::array<Sge, kMostSges>, NicQueuePair::kBatch> sges;
  std::array<std::array<uint8_t, 512>, NicQueuePair::kBatch> bytes;  // inline
};

int UserQueuePair::Make(UserDevice& device, RingMemory& memory, const QueuePairWish& wish, DomainObject& domain,
                        UserCompletionQueue& sends_to, UserCompletionQueue& receives_to, UserSharedReceives* shared,
                        const ObjectTable& objects, AsyncEvents& async, std::unique_ptr<UserQueuePair>* made) {
  const Limits& limits = device.nic().limits();
  if (wish.type != IBV_QPT_RC && wish.type != IBV_QPT_UD) return EOPNOTSUPP;
  if (wish.max_send_wr > UserDevice::kMaxRequests || wish.max_send_sge > limits.max_sges) return EINVAL;
  if (wish.max_inline_data > limits.max_inline) return EINVAL;
  if (shared == nullptr && (wish.max_recv_wr > UserDevice::kMaxRequests || wish.max_recv_sge > limits.max_sges)) {
    return EINVAL;
  }
  std::unique_ptr<UserQueuePair> self(new UserQueuePair(device, wish, domain, sends_to, receives_to, shared, async));
  if (const int error = self->MakeRings(memory)) return error;
  if (const int error = self->MakeQueuePair(objects)) return error;
  *made = std::move(self);
  return 0;
}

UserQueuePair::UserQueuePair(UserDevice& device, const QueuePairWish& wish, DomainObject& domain,
                             UserCompletionQueue& sends_to, UserCompletionQueue& receives_to,
                             UserSharedReceives* shared, AsyncEvents& async)
    : Object(kKind),
      device_(device),
      options_(wish),
      domain_(domain),
      sends_to_(sends_to),
      receives_to_(receives_to),
      shared_(shared),
      uses_{Use(&domain), Use(&sends_to), Use(&receives_to), Use(shared)},
      async_(async),
      state_(IBV_QPS_RESET) {}

int UserQueuePair::MakeRings(RingMemory& memory) {
  const uint32_t inline_bytes = std::max<uint32_t>(options_.max_inline_data, options_.max_send_sge * sizeof(rxe_sge));
  send_ring_ = ProviderRing::Make(memory, options_.max_send_wr, kSendHeader + inline_bytes);
  if (send_ring_ == nullptr) return ENOMEM;
  sends_.resize(send_ring_->capacity() + size_t{1});
  if (shared_ != nullptr) return 0;
  receive_ring_ =
      ProviderRing::Make(memory, options_.max_recv_wr, kReceiveHeader + options_.max_recv_sge * sizeof(rxe_sge));
  if (receive_ring_ == nullptr) return ENOMEM;
  receives_.resize(receive_ring_->capacity() + size_t{1});
  return 0;
}

int UserQueuePair::MakeQueuePair(const ObjectTable& objects) {
  const Limits& limits = device_.nic().limits();
  NicQueuePairOptions options;
  options.send_queue = &sends_to_.queue();
  options.receive_queue = &receives_to_.queue();
  options.shared_receives = shared_ != nullptr ? &shared_->queue() : nullptr;
  options.max_send_requests = std::min(send_ring_->capacity() + 1, limits.max_send_requests);
  options.max_receive_requests =
      shared_ != nullptr ? 0 : std::min(receive_ring_->capacity() + 1, limits.max_receive_requests);
  const int error = options_.type == IBV_QPT_UD
                        ? MakeDatagramQueuePair(device_, domain_, objects, options, &queue_pair_)
                        : MakeConnectedQueuePair(device_, domain_, objects, options, &queue_pair_);
  if (error != 0) return error;
  sends_to_.Add(number(), *this);
  receives_to_.Add(number(), *this);
  device_.Add(*this);
  return 0;
}

UserQueuePair::~UserQueuePair() {
  if (queue_pair_ == nullptr) return;
  device_.Remove(*this);
  Forget();
  sends_to_.Remove(number());
  receives_to_.Remove(number());
  RetireAsyncEvents();
}

// Completions so far are the program's; its other requests end without completions.
void UserQueuePair::Forget() {
  sends_to_.Drain();
  receives_to_.Drain();
}

ib_uverbs_create_qp_resp UserQueuePair::Granted() const {
  ib_uverbs_create_qp_resp granted{};
  granted.qpn = number();
  granted.max_send_wr = send_ring_->capacity();
  granted.max_recv_wr = receive_ring_ != nullptr ? receive_ring_->capacity() : 0;
  granted.max_send_sge = options_.max_send_sge;
  granted.max_recv_sge = options_.max_recv_sge;
  granted.max_inline_data = options_.max_inline_data;
  return granted;
}

rxe_create_qp_resp UserQueuePair::Places() const {
  rxe_create_qp_resp places{};
  places.sq_mi = send_ring_->place();
  if (receive_ring_ != nullptr) places.rq_mi = receive_ring_->place();
  return places;
}

// ---- States.

// The NIC's queue pair may go to Error by itself.
uint32_t UserQueuePair::state() const {
  return state_ != IBV_QPS_RESET && queue_pair_->state() == QueuePairState::kError ? uint32_t{IBV_QPS_ERR} : state_;
}

int UserQueuePair::Modify(const ib_uverbs_modify_qp& request) {
  const uint32_t mask = request.attr_mask;
  const uint32_t from = state();
  if (Has(mask, IBV_QP_CUR_STATE) && request.cur_qp_state != from) return EINVAL;
  const uint32_t to = Has(mask, IBV_QP_STATE) ? request.qp_state : from;
  if (!IsLegalStep(queue_pair_->service(), from, to, mask)) return EINVAL;
  if (const int error = Check(request, to)) return error;
  const ib_uverbs_modify_qp before = attributes_;
  Take(request);
  const int error = Step(from, to);
  if (error != 0) attributes_ = before;
  return error;
}

int UserQueuePair::Check(const ib_uverbs_modify_qp& request, uint32_t to) const {
  const uint32_t mask = request.attr_mask;
  const Limits& limits = device_.nic().limits();
  if (to > IBV_QPS_ERR) return EINVAL;
  if (Has(mask, IBV_QP_PORT) && request.port_num != kPortOfQueuePair) return EINVAL;
  if (Has(mask, IBV_QP_PKEY_INDEX) && request.pkey_index != 0) return EINVAL;
  if (Has(mask, IBV_QP_ALT_PATH)) return EINVAL;  // RoCE devices have none
  if (Has(mask, IBV_QP_AV)) {
    const ib_uverbs_qp_dest& to_peer = request.dest;
    if (to_peer.is_global == 0 || to_peer.port_num != kPortOfQueuePair || to_peer.sgid_index != 0) return EINVAL;
  }
  if (Has(mask, IBV_QP_PATH_MTU)) {
    const uint32_t mtu = MtuBytes(request.path_mtu);
    if (mtu == 0 || mtu > limits.active_mtu) return EINVAL;
  }
  if (Has(mask, IBV_QP_MAX_QP_RD_ATOMIC) && request.max_rd_atomic > limits.max_reads) return EINVAL;
  if (Has(mask, IBV_QP_MAX_DEST_RD_ATOMIC) && request.max_dest_rd_atomic > limits.max_reads) return EINVAL;
  if (Has(mask, IBV_QP_TIMEOUT) && request.timeout > kLongestTimeout) return EINVAL;
  if (Has(mask, IBV_QP_RETRY_CNT) && request.retry_cnt > 7) return EINVAL;
  if (Has(mask, IBV_QP_RNR_RETRY) && request.rnr_retry > 7) return EINVAL;
  if (Has(mask, IBV_QP_MIN_RNR_TIMER) && request.min_rnr_timer > 31) return EINVAL;
  return 0;
}

void UserQueuePair::Take(const ib_uverbs_modify_qp& request) {
  const uint32_t mask = request.attr_mask;
  ib_uverbs_modify_qp& kept = attributes_;
  if (Has(mask, IBV_QP_ACCESS_FLAGS)) kept.qp_access_flags = request.qp_access_flags;
  if (Has(mask, IBV_QP_PKEY_INDEX)) kept.pkey_index = request.pkey_index;
  if (Has(mask, IBV_QP_PORT)) kept.port_num = request.port_num;
  if (Has(mask, IBV_QP_AV)) kept.dest = request.dest;
  if (Has(mask, IBV_QP_PATH_MTU)) kept.path_mtu = request.path_mtu;
  if (Has(mask, IBV_QP_DEST_QPN)) kept.dest_qp_num = request.dest_qp_num & kPsnMask;
  if (Has(mask, IBV_QP_RQ_PSN)) kept.rq_psn = request.rq_psn & kPsnMask;
  if (Has(mask, IBV_QP_SQ_PSN)) kept.sq_psn = request.sq_psn & kPsnMask;
  if (Has(mask, IBV_QP_MAX_QP_RD_ATOMIC)) kept.max_rd_atomic = request.max_rd_atomic;
  if (Has(mask, IBV_QP_MAX_DEST_RD_ATOMIC)) kept.max_dest_rd_atomic = request.max_dest_rd_atomic;
  if (Has(mask, IBV_QP_MIN_RNR_TIMER)) kept.min_rnr_timer = request.min_rnr_timer;
  if (Has(mask, IBV_QP_TIMEOUT)) kept.timeout = request.timeout;
  if (Has(mask, IBV_QP_RETRY_CNT)) kept.retry_cnt = request.retry_cnt;
  if (Has(mask, IBV_QP_RNR_RETRY)) kept.rnr_retry = request.rnr_retry;
  if (Has(mask, IBV_QP_QKEY)) kept.qkey = request.qkey;
  if (Has(mask, IBV_QP_PATH_MIG_STATE)) kept.path_mig_state = request.path_mig_state;
}

int UserQueuePair::Step(uint32_t from, uint32_t to) {
  absl::Status status;
  switch (to) {
    case IBV_QPS_RESET:
      Forget();
      status = queue_pair_->Modify(QueuePairState::kReset, attributes_);
      sends_taken_ = sends_over_ = send_ring_->producer();
      send_ring_->SetConsumer(sends_over_);
      if (receive_ring_ != nullptr) {
        receives_taken_ = receive_ring_->producer();
        receive_ring_->SetConsumer(receives_taken_);
      }
      refusal_ = CompletionStatus::kSuccess;
      draining_ = false;
      attributes_ = {};
      break;
    case IBV_QPS_INIT:
      status = queue_pair_->Modify(QueuePairState::kInit, attributes_);
      break;
    case IBV_QPS_RTR:
      status = queue_pair_->Modify(QueuePairState::kReadyToReceive, attributes_);
      break;
    case IBV_QPS_RTS:
      draining_ = false;
      // A datagram queue pair may change its Q_Key from now on.
      if (from == IBV_QPS_RTR || is_datagram()) {
        status = queue_pair_->Modify(QueuePairState::kReadyToSend, attributes_);
      }
      break;
    case IBV_QPS_SQD:
      draining_ = true;
      break;
    case IBV_QPS_ERR:
      status = queue_pair_->Modify(QueuePairState::kError, attributes_);
      break;
    default:
      return EINVAL;
  }
  if (!status.ok()) return ErrnoOf(status);
  state_ = to;
  Pull();
  return 0;
}

ib_uverbs_query_qp_resp UserQueuePair::Query() const {
  const ib_uverbs_modify_qp& set = attributes_;
  const ib_uverbs_create_qp_resp granted = Granted();
  ib_uverbs_query_qp_resp answer{};
  answer.dest = set.dest;
  answer.max_send_wr = granted.max_send_wr;
  answer.max_recv_wr = granted.max_recv_wr;
  answer.max_send_sge = granted.max_send_sge;
  answer.max_recv_sge = granted.max_recv_sge;
  answer.max_inline_data = granted.max_inline_data;
  answer.qkey = set.qkey;
  answer.rq_psn = set.rq_psn;
  answer.sq_psn = set.sq_psn;
  answer.dest_qp_num = set.dest_qp_num;
  answer.qp_access_flags = set.qp_access_flags;
  answer.pkey_index = set.pkey_index;
  answer.qp_state = answer.cur_qp_state = static_cast<uint8_t>(state());
  answer.path_mtu = set.path_mtu;
  answer.path_mig_state = set.path_mig_state;
  answer.sq_draining = draining_ && sends_over_ != sends_taken_ ? 1 : 0;
  answer.max_rd_atomic = set.max_rd_atomic;
  answer.max_dest_rd_atomic = set.max_dest_rd_atomic;
  answer.min_rnr_timer = set.min_rnr_timer;
  answer.port_num = set.port_num;
  answer.timeout = set.timeout;
  answer.retry_cnt = set.retry_cnt;
  answer.rnr_retry = set.rnr_retry;
  answer.sq_sig_all = options_.all_signaled ? 1 : 0;
  return answer;
}

// ---- Requests.

int UserQueuePair::PostSend() {
  const uint32_t now = state();
  if (now < IBV_QPS_RTS) return EINVAL;
  PullSends();
  return 0;
}

void UserQueuePair::Pull() {
  const uint32_t now = state();
  if (now == IBV_QPS_RESET) return;
  if (receive_ring_ != nullptr && receives_taken_ != receive_ring_->producer()) PullReceives();
  if (now == IBV_QPS_ERR || (now == IBV_QPS_RTS && sends_taken_ != send_ring_->producer())) PullSends();
}

void UserQueuePair::PullSends() {
  const uint32_t producer = send_ring_->producer();
  if (sends_taken_ == producer || (draining_ && state() != IBV_QPS_ERR)) return;
  Batch batch;
  while (sends_taken_ != producer && refusal_ == CompletionStatus::kSuccess) {
    const bool flushes = state() == IBV_QPS_ERR;
    const auto fails = [&](uint64_t ahead) { return !flushes && device_.failing().IsAfter(ahead); };
    uint32_t index = sends_taken_;
    NicQueuePair::Added added = NicQueuePair::Added::kYes;
    while (index != producer && queue_pair_->batched() < NicQueuePair::kBatch && added == NicQueuePair::Added::kYes &&
           !fails(queue_pair_->batched())) {
      added = ReadSend(index, &batch);
      if (added == NicQueuePair::Added::kYes) index = send_ring_->Next(index);
    }
    const PostResult posted = queue_pair_->PostBatch();
    sends_taken_ = (sends_taken_ + static_cast<uint32_t>(posted.accepted)) & send_ring_->capacity();
    if (!flushes) device_.failing().Take(posted.accepted);
    if (absl::IsResourceExhausted(posted.status)) return;  // the next request that is over makes room
    if (!posted.ok() || added == NicQueuePair::Added::kRefused) {
      refusal_ = CompletionStatus::kLocalQpOperation;
      LOG(WARNING) << "queue pair " << number() << " refuses a request: " << posted.status;
    } else if (sends_taken_ != producer && fails(0)) {
      refusal_ = device_.failing().fault().status;
    }
    if (!flushes && refusal_ != CompletionStatus::kSuccess) device_.failing().Take(1);
  }
  if (refusal_ != CompletionStatus::kSuccess && sends_over_ == sends_taken_) RefuseNext();
}

NicQueuePair::Added UserQueuePair::ReadSend(uint32_t index, Batch* batch) {
  rxe_send_wqe wqe;
  const auto* const element = static_cast<const uint8_t*>(send_ring_->at(index));
  std::memcpy(&wqe, element, kSendHeader);
  sends_[index] = {wqe.wr.wr_id, options_.all_signaled || Has(wqe.wr.send_flags, IBV_SEND_SIGNALED)};
  const SendFlags flags = FlagsOf(wqe.wr.send_flags);
  const size_t at = queue_pair_->batched();
  const uint8_t* const data = element + kSendHeader;
  const uint32_t room = send_ring_->element_size() - static_cast<uint32_t>(kSendHeader);
  auto& sges = batch->sges[at];
  uint32_t count = 1;
  if (wqe.wr.opcode == IBV_WR_BIND_MW || wqe.wr.opcode == IBV_WR_LOCAL_INV) {
    count = 0;  // ignores what the program left there
  } else if (Has(flags, kInline)) {
    auto& bytes = batch->bytes[at];
    if (wqe.dma.length > std::min<size_t>(room, bytes.size())) return NicQueuePair::Added::kRefused;
    std::memcpy(bytes.data(), data, wqe.dma.length);
    sges[0] = {bytes.data(), wqe.dma.length, 0};
  } else {
    count = CopySges(data, room, wqe.dma.num_sge, &sges);
    if (count != wqe.dma.num_sge) return NicQueuePair::Added::kRefused;
  }
  return queue_pair_->Add(index, wqe.wr, flags, absl::MakeConstSpan(sges.data(), count));
}

// The request at sends_taken_ is refused; those before it are over.
void UserQueuePair::RefuseNext() {
  rxe_send_wqe wqe;
  std::memcpy(&wqe, send_ring_->at(sends_taken_), kSendHeader);
  ib_uverbs_wc work_completion{};
  work_completion.wr_id = wqe.wr.wr_id;
  work_completion.status = StatusNumber(std::exchange(refusal_, CompletionStatus::kSuccess));
  work_completion.qp_num = number();
  sends_taken_ = sends_over_ = send_ring_->Next(sends_taken_);
  send_ring_->SetConsumer(sends_over_);
  sends_to_.Push(work_completion, false);
  queue_pair_->Modify(QueuePairState::kError, attributes_).IgnoreError();  // always legal
  PullSends();
}

void UserQueuePair::PullReceives() {
  while (receives_taken_ != receive_ring_->producer()) {
    const ReceiveWqe receive = ReadReceive(*receive_ring_, receives_taken_);
    ReceiveRequest request;
    request.id = kReceiveId | receives_taken_;
    request.sges = receive.memory();
    const PostResult posted = queue_pair_->PostReceive(absl::MakeConstSpan(&request, 1));
    if (!posted.ok()) return;
    receives_[receives_taken_] = receive.request;
    receives_taken_ = receive_ring_->Next(receives_taken_);
  }
}

bool UserQueuePair::Finish(const Completion& completion, ib_uverbs_wc* work_completion) {
  if ((completion.id & kReceiveId) == 0) return FinishSend(completion, work_completion);
  *work_completion = ToWorkCompletion(completion, FinishReceive(completion.id));
  if (is_datagram() && completion.status == CompletionStatus::kSuccess) {
    work_completion->src_qp = completion.source_queue_pair;
    work_completion->wc_flags |= IBV_WC_GRH;
    work_completion->port_num = kPortOfQueuePair;
    work_completion->sl = device_.identity().address.is_ipv4() ? kFromIpv4 : kFromIpv6;
  }
  return true;
}

uint64_t UserQueuePair::FinishReceive(uint64_t id) {
  if (shared_ != nullptr) return shared_->Finish(id);
  const auto index = static_cast<uint32_t>(id & ~kReceiveId);
  receive_ring_->SetConsumer(receive_ring_->Next(index));
  return receives_[index];
}

bool UserQueuePair::FinishSend(const Completion& completion, ib_uverbs_wc* work_completion) {
  const auto index = static_cast<uint32_t>(completion.id);
  const SendNote& note = sends_[index];
  sends_over_ = send_ring_->Next(index);
  send_ring_->SetConsumer(sends_over_);
  *work_completion = ToWorkCompletion(completion, note.request);
  const bool told = note.signaled || completion.status != CompletionStatus::kSuccess;
  if (draining_ && sends_over_ == sends_taken_ && state() != IBV_QPS_ERR)
    async_.Raise(IBV_EVENT_SQ_DRAINED, options_.name);
  return told;
}

void UserQueuePair::OnQueueLost() {
  queue_pair_->Modify(QueuePairState::kError, attributes_).IgnoreError();  // always legal
  async_.Raise(IBV_EVENT_QP_FATAL, options_.name);
}

}  // namespace tokamak::verbs::kernel
