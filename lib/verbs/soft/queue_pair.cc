#include "lib/verbs/soft/queue_pair.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/memory_handles.h"
#include "lib/verbs/soft/posting.h"

namespace tokamak::verbs::soft {
namespace {

bool IsSendOrWrite(Opcode opcode) {
  return opcode == Opcode::kSend || opcode == Opcode::kSendWithImm || opcode == Opcode::kSendWithInvalidate ||
         opcode == Opcode::kWrite || opcode == Opcode::kWriteWithImm;
}

bool IsAtomic(Opcode opcode) { return opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd; }

}  // namespace

SoftQueuePair::SoftQueuePair(std::shared_ptr<Nic> nic, ConnectedCore* core, const QueuePairOptions& options)
    : nic_(std::move(nic)), core_(core), max_sges_(options.max_sges), max_inline_(options.max_inline) {}

SoftQueuePair::~SoftQueuePair() {
  Nic::Control control(*nic_);
  nic_->Destroy(core_);
}

PostResult SoftQueuePair::PostSend(absl::Span<const SendRequest> requests) {
  PostResult result = MaySend(state());
  if (!result.ok()) return result;
  for (const SendRequest& request : requests) {
    result.status = Prepare(request);
    if (!result.status.ok()) break;
    ++result.accepted;
  }
  if (result.accepted > 0) {
    core_->sends.Publish();
    nic_->RingDoorbell(*core_);
  }
  return result;
}

absl::Status SoftQueuePair::Prepare(const SendRequest& request) {
  const uint64_t length = TotalLength(request.sges);
  if (absl::Status s = Check(request, length); !s.ok()) return s;
  SendQueue& sends = core_->sends;
  if (sends.full()) return QueueFull(sends.depth());
  SendSlot& slot = sends.next();
  slot.id = request.id;
  slot.opcode = request.opcode;
  slot.remote_address = request.remote_address;
  slot.rkey = request.rkey;
  slot.immediate = request.immediate;
  slot.compare = request.compare;
  slot.swap_or_add = request.swap_or_add;
  slot.signaled = (request.flags & kSignaled) != 0;
  slot.solicited = (request.flags & kSolicited) != 0;
  slot.fence = (request.flags & kFence) != 0;
  SetSource(request.sges, (request.flags & kInline) != 0, length, sends.next_inline(), &slot);
  if (request.opcode == Opcode::kBindWindow) {
    auto& window = static_cast<SoftMemoryWindow&>(*request.bind.window);
    slot.bind = {window.Next(),       request.bind.region->rkey(), reinterpret_cast<uint64_t>(request.bind.address),
                 request.bind.length, request.bind.access,         window.zero_based()};
    window.Posted(slot.bind.window);
  }
  sends.Prepare();
  return absl::OkStatus();
}

absl::Status SoftQueuePair::Check(const SendRequest& request, uint64_t length) const {
  if (request.sges.size() > max_sges_) {
    return absl::InvalidArgumentError(absl::StrCat(request.sges.size(), " sges, at most ", max_sges_));
  }
  if (absl::Status s = CheckLength(length, nic_->limits()); !s.ok()) return s;
  if ((request.flags & kInline) != 0) {
    if (!IsSendOrWrite(request.opcode)) return absl::InvalidArgumentError("only sends and writes can be inline");
    if (length > max_inline_) {
      return absl::InvalidArgumentError(absl::StrCat(length, " bytes inline, at most ", max_inline_));
    }
  }
  if (IsAtomic(request.opcode)) {
    if (request.sges.size() != 1 || length != sizeof(uint64_t)) {
      return absl::InvalidArgumentError("an atomic's result needs one sge of 8 bytes");
    }
    if (request.remote_address % sizeof(uint64_t) != 0) {
      return absl::InvalidArgumentError("an atomic's address must be a multiple of 8");
    }
  }
  if (request.opcode == Opcode::kBindWindow) return CheckBind(request);
  if (request.opcode == Opcode::kLocalInvalidate && !request.sges.empty()) {
    return absl::InvalidArgumentError("an invalidate has no sges");
  }
  return absl::OkStatus();
}

// Checks all but the memory, which is checked when it is bound: WindowBinding.
absl::Status SoftQueuePair::CheckBind(const SendRequest& request) const {
  const auto* window = dynamic_cast<const SoftMemoryWindow*>(request.bind.window);
  const auto* region = dynamic_cast<const SoftMemoryRegion*>(request.bind.region);
  if (window == nullptr || region == nullptr || window->nic() != nic_.get() || region->nic() != nic_.get()) {
    return absl::InvalidArgumentError("a bind needs a window and a region of its queue pair's device");
  }
  if (!request.sges.empty()) return absl::InvalidArgumentError("a bind has no sges");
  constexpr uint32_t kRemote = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  if ((request.bind.access & ~kRemote) != 0) {
    return absl::InvalidArgumentError("a window gives remote rights and no others");
  }
  return absl::OkStatus();
}

PostResult SoftQueuePair::PostReceive(absl::Span<const ReceiveRequest> requests) {
  return PostReceivesTo(*nic_, *core_, requests, max_sges_);
}

absl::Status SoftQueuePair::Modify(QueuePairState state, const QueuePairAttributes& attributes) {
  Nic::Control control(*nic_);
  return nic_->ModifyByOwner(*core_, state, attributes);
}

}  // namespace tokamak::verbs::soft
