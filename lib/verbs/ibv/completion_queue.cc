#include "lib/verbs/ibv/completion_queue.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/verbs/ibv/posting/work_ring.h"
#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {
namespace {

CompletionOpcode ToCompletionOpcode(ibv_wc_opcode opcode) {
  switch (opcode) {
    case IBV_WC_RDMA_WRITE:
      return CompletionOpcode::kWrite;
    case IBV_WC_RDMA_READ:
      return CompletionOpcode::kRead;
    case IBV_WC_COMP_SWAP:
      return CompletionOpcode::kCompareSwap;
    case IBV_WC_FETCH_ADD:
      return CompletionOpcode::kFetchAdd;
    case IBV_WC_BIND_MW:
      return CompletionOpcode::kBindWindow;
    case IBV_WC_LOCAL_INV:
      return CompletionOpcode::kLocalInvalidate;
    case IBV_WC_RECV:
      return CompletionOpcode::kReceive;
    case IBV_WC_RECV_RDMA_WITH_IMM:
      return CompletionOpcode::kReceiveWriteWithImm;
    default:
      return CompletionOpcode::kSend;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<CompletionCore>> CompletionCore::Make(std::shared_ptr<Context> context,
                                                                     os::EpollLoop& loop, uint32_t depth) {
  auto core = std::make_shared<CompletionCore>(std::move(context), loop);
  ibv_context* const device = core->context_->device();
  auto channel = core->context_->completion_channels().Of(device, loop);
  if (!channel.ok()) return channel.status();
  core->channel_ = *std::move(channel);
  errno = 0;
  core->queue_ = ibv_create_cq(device, core->EntriesFor(depth), static_cast<AsyncTarget*>(core.get()),
                               core->channel_->get(), core->context_->NextVector());
  if (core->queue_ == nullptr) return ErrnoStatus(errno == 0 ? EIO : errno, "ibv_create_cq");
  return core;
}

int CompletionCore::EntriesFor(uint32_t depth) const {
  if (!context_->quirks().completes_unasked()) return static_cast<int>(depth);
  // Room for unasked completions of many queue pairs.
  constexpr uint32_t kUnasked = 4096;
  return static_cast<int>(std::min(depth + kUnasked, context_->limits().max_completions));
}

absl::Status CompletionCore::Resize(uint32_t depth) {
  if (depth == 0 || depth > context_->limits().max_completions) {
    return absl::InvalidArgumentError(absl::StrCat("a completion queue has 1 to ", context_->limits().max_completions));
  }
  const int error = std::abs(ibv_resize_cq(queue_, EntriesFor(depth)));
  if (error == 0) return absl::OkStatus();
  const absl::Status status = ErrnoStatus(error, "ibv_resize_cq");
  const bool cannot = error == EOPNOTSUPP || error == ENOSYS;
  return cannot ? absl::UnimplementedError(status.message()) : status;
}

CompletionCore::~CompletionCore() {
  if (queue_ == nullptr) return;
  ibv_ack_cq_events(queue_, unacknowledged_);
  const int error = ibv_destroy_cq(queue_);
  LOG_IF(ERROR, error != 0) << "ibv_destroy_cq: " << std::strerror(error);
}

size_t CompletionCore::Poll(absl::Span<Completion> completions) {
  size_t count = 0;
  while (count < completions.size()) {
    ibv_wc batch[kBatch];
    const size_t fetched = Fetch(batch, std::min(kBatch, completions.size() - count));
    if (fetched == 0) break;
    for (size_t i = 0; i < fetched; ++i) {
      if (HandOut(batch[i], &completions[count])) ++count;
    }
  }
  return count;
}

// Takes held ones first, then the provider's, then our flushes.
size_t CompletionCore::Fetch(ibv_wc* to, size_t most) {
  if (held_begin_ < held_.size()) {
    const size_t count = std::min(most, held_.size() - held_begin_);
    std::copy_n(held_.begin() + static_cast<ptrdiff_t>(held_begin_), count, to);
    held_begin_ += count;
    if (held_begin_ == held_.size()) {
      held_.clear();
      held_begin_ = 0;
    }
    return count;
  }
  if (const size_t polled = PollProvider(to, most); polled > 0) return polled;
  if (flushed_.empty()) return 0;
  const size_t count = std::min(most, flushed_.size());
  const auto end = flushed_.begin() + static_cast<ptrdiff_t>(count);
  std::copy(flushed_.begin(), end, to);
  flushed_.erase(flushed_.begin(), end);
  return count;
}

// Returns 0 only if the provider has none.
size_t CompletionCore::PollProvider(ibv_wc* to, size_t most) {
  for (;;) {
    const int polled = ibv_poll_cq(queue_, static_cast<int>(most), to);
    if (polled <= 0) {
      LOG_IF_EVERY_N(ERROR, polled < 0, 1000) << "ibv_poll_cq: " << polled << "; what is in the queue is not seen";
      return 0;
    }
    taken_since_armed_ = true;
    if (!context_->quirks().completes_unasked()) return static_cast<size_t>(polled);
    size_t kept = 0;
    for (int i = 0; i < polled; ++i) {
      CompletionOwner* const owner = Find(to[i].qp_num);
      if (owner == nullptr || !owner->Arrived(to[i])) to[kept++] = to[i];
    }
    if (kept > 0) return kept;
  }
}

CompletionOwner* CompletionCore::Find(uint32_t number) {
  if (last_ != nullptr && last_->completion_number() == number) return last_;
  const auto it = owners_.find(number);
  if (it == owners_.end()) return nullptr;
  last_ = it->second;
  return last_;
}

bool CompletionCore::HandOut(const ibv_wc& done, Completion* to) {
  CompletionOwner* const owner = Find(done.qp_num);
  if (owner == nullptr) {
    LOG(ERROR) << "a completion of queue pair " << done.qp_num << ", which does not complete here";
    return false;
  }
  *to = Completion();
  to->status = ToCompletionStatus(done.status);
  to->queue_pair_number = done.qp_num;
  to->provider_code = done.vendor_err;
  if (done.status == IBV_WC_SUCCESS) {
    to->opcode = ToCompletionOpcode(done.opcode);
    to->byte_count = done.byte_len;
    if ((done.wc_flags & IBV_WC_WITH_IMM) != 0) {
      to->has_immediate = true;
      to->immediate = ntohl(done.imm_data);
    } else if ((done.wc_flags & IBV_WC_WITH_INV) != 0) {
      to->has_invalidated = true;
      to->invalidated_rkey = done.invalidated_rkey;
    }
  }
  return owner->Finish(done, to);
}

bool CompletionCore::TakeAll() {
  held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(held_begin_));
  held_begin_ = 0;
  const size_t before = held_.size();
  ibv_wc batch[kBatch];
  for (size_t polled; (polled = PollProvider(batch, kBatch)) > 0;) {
    held_.insert(held_.end(), batch, batch + polled);
  }
  return held_.size() > before;
}

bool CompletionCore::AnyWaiting() {
  if (held_begin_ < held_.size() || !flushed_.empty()) return true;
  ibv_wc batch[kBatch];
  const size_t polled = PollProvider(batch, kBatch);
  if (polled == 0) return false;
  held_.assign(batch, batch + polled);
  return true;
}

void CompletionCore::Arm(bool solicited_only) {
  const int error = ibv_req_notify_cq(queue_, solicited_only ? 1 : 0);
  LOG_IF_EVERY_N(ERROR, error != 0, 1000) << "ibv_req_notify_cq: " << std::strerror(std::abs(error));
  taken_since_armed_ = false;
}

void CompletionCore::OnChannelEvent() {
  // In batches: it takes a lock, and counts in 32 bits.
  constexpr unsigned int kAcknowledgeAt = 256;
  if (++unacknowledged_ >= kAcknowledgeAt) ibv_ack_cq_events(queue_, std::exchange(unacknowledged_, 0));
  taken_since_armed_ = false;
  if (heard_) heard_();
}

void CompletionCore::Add(CompletionOwner& owner) {
  owners_[owner.completion_number()] = &owner;
  const base::MutexLock lock(overrun_mutex_);
  doomed_.push_back(&owner);
}

void CompletionCore::Remove(CompletionOwner& owner) {
  const base::MutexLock lock(overrun_mutex_);
  doomed_.erase(std::remove(doomed_.begin(), doomed_.end(), &owner), doomed_.end());
}

void CompletionCore::Forget(CompletionOwner& owner, bool for_good) {
  const uint32_t number = owner.completion_number();
  const auto forget = [&](const ibv_wc& done) {
    if (done.qp_num != number) return false;
    Completion unused;
    owner.Finish(done, &unused);
    return true;
  };
  TakeAll();
  held_.erase(std::remove_if(held_.begin(), held_.end(), forget), held_.end());
  flushed_.erase(std::remove_if(flushed_.begin(), flushed_.end(), forget), flushed_.end());
  if (!for_good) return;
  owners_.erase(number);
  last_ = nullptr;
}

void CompletionCore::AddFlush(uint32_t number, uint64_t wr_id) {
  if (dead_) return;
  ibv_wc flush{};
  flush.wr_id = wr_id;
  flush.status = IBV_WC_WR_FLUSH_ERR;
  flush.qp_num = number;
  flushed_.push_back(flush);
}

void CompletionCore::OnAsyncEvent(ibv_event_type event) {
  if (event != IBV_EVENT_CQ_ERR) return;
  dead_ = true;
  const base::MutexLock lock(overrun_mutex_);
  for (CompletionOwner* owner : doomed_) owner->Fail();
}

IbvCompletionQueue::IbvCompletionQueue(std::shared_ptr<CompletionCore> core, std::function<void()> on_event)
    : core_(std::move(core)), on_event_(std::make_shared<std::function<void()>>(std::move(on_event))) {
  core_->OnEvents([this] {
    device_ = kNotArmed;
    told_ = true;
  });
  core_->channel().Listen();
  poller_ = core_->loop().AddPoller(*this);
}

IbvCompletionQueue::~IbvCompletionQueue() {
  core_->OnEvents(nullptr);
  core_->channel().Ignore();
}

void IbvCompletionQueue::RequestNotify(bool solicited_only) {
  if (!solicited_only || core_->context()->quirks().forgets_solicited) {
    asked_ = kAll;  // the loop looks, and arms the device before it sleeps
    return;
  }
  if (asked_ == kAll) return;
  asked_ = kSolicited;
  if (device_ != kNotArmed) return;
  // Only the device knows which completions are solicited, so it is armed before the owner drains.
  core_->Arm(true);
  device_ = kSolicited;
}

absl::Status IbvCompletionQueue::Resize(uint32_t depth) {
  if (absl::Status s = core_->Resize(depth); !s.ok()) return s;
  device_ = kNotArmed;  // a resize may disarm the provider: the loop arms it again
  return absl::OkStatus();
}

bool IbvCompletionQueue::Poll() {
  // Even for an empty queue: an event after Arm disarms the device.
  const bool told = std::exchange(told_, false);
  const bool took = core_->awaited() && core_->TakeAll();
  if (asked_ == kNotArmed || (asked_ == kSolicited && !told && !look_ && !core_->AnyFlushed())) return took || told;
  look_ = false;
  if (!core_->AnyWaiting()) return took || told;
  Deliver();
  return true;
}

void IbvCompletionQueue::Arm() {
  if (core_->EventIsStale()) {
    while (device_ != kNotArmed && core_->channel().TakeEvent()) {  // other queues' too: one of each at most
    }
  }
  told_ = false;
  const Armed wanted = core_->awaited() ? kAll : asked_;
  if (wanted <= device_) return;
  core_->Arm(wanted == kSolicited);
  // Solicited completions may have come since the device's last event.
  look_ = wanted == kSolicited;
  device_ = wanted;
}

// The owner may drop the queue in its event.
void IbvCompletionQueue::Deliver() {
  asked_ = kNotArmed;
  const std::shared_ptr<std::function<void()>> on_event = on_event_;
  (*on_event)();
}

}  // namespace tokamak::verbs::ibv
