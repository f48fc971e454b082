#include "lib/verbs/ibv/posting/posting.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tokamak::verbs::ibv {
namespace {

bool IsSendOrWrite(Opcode opcode) {
  return opcode == Opcode::kSend || opcode == Opcode::kSendWithImm || opcode == Opcode::kSendWithInvalidate ||
         opcode == Opcode::kWrite || opcode == Opcode::kWriteWithImm;
}

bool IsAtomic(Opcode opcode) { return opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd; }

uint64_t TotalLength(absl::Span<const Sge> sges) {
  uint64_t sum = 0;
  for (const Sge& sge : sges) sum += sge.length;
  return sum;
}

absl::Status CheckCapability(Opcode opcode, const Limits& limits) {
  switch (opcode) {
    case Opcode::kSendWithImm:
    case Opcode::kWriteWithImm:
      return limits.immediate ? absl::OkStatus() : absl::UnimplementedError("the device has no immediate data");
    case Opcode::kCompareSwap:
    case Opcode::kFetchAdd:
      return limits.atomics ? absl::OkStatus() : absl::UnimplementedError("the device has no atomics");
    case Opcode::kSendWithInvalidate:
    case Opcode::kBindWindow:
    case Opcode::kLocalInvalidate:
      return limits.memory_windows ? absl::OkStatus() : absl::UnimplementedError("the device has no memory windows");
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckSges(absl::Span<const Sge> sges, const Limits& limits, uint32_t max_sges, uint64_t* length) {
  if (sges.size() > max_sges) return absl::InvalidArgumentError(absl::StrCat(sges.size(), " sges, at most ", max_sges));
  *length = TotalLength(sges);
  if (*length <= limits.max_message) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(*length, " bytes, at most ", limits.max_message));
}

ibv_wr_opcode ToWire(Opcode opcode) {
  switch (opcode) {
    case Opcode::kSend:
      return IBV_WR_SEND;
    case Opcode::kSendWithImm:
      return IBV_WR_SEND_WITH_IMM;
    case Opcode::kSendWithInvalidate:
      return IBV_WR_SEND_WITH_INV;
    case Opcode::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Opcode::kWriteWithImm:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Opcode::kRead:
      return IBV_WR_RDMA_READ;
    case Opcode::kCompareSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Opcode::kFetchAdd:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case Opcode::kBindWindow:
      return IBV_WR_BIND_MW;
    case Opcode::kLocalInvalidate:
      return IBV_WR_LOCAL_INV;
  }
  return IBV_WR_SEND;
}

unsigned int ToWire(SendFlags flags) {
  unsigned int wire = 0;
  if ((flags & kSignaled) != 0) wire |= IBV_SEND_SIGNALED;
  if ((flags & kSolicited) != 0) wire |= IBV_SEND_SOLICITED;
  if ((flags & kFence) != 0) wire |= IBV_SEND_FENCE;
  if ((flags & kInline) != 0) wire |= IBV_SEND_INLINE;
  return wire;
}

int PostChain(ibv_qp* queue_pair, ibv_send_wr* first, ibv_send_wr** bad) {
  return ibv_post_send(queue_pair, first, bad);
}
int PostChain(ibv_qp* queue_pair, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return ibv_post_recv(queue_pair, first, bad);
}

}  // namespace

absl::Status CheckSend(const SendRequest& request, const Limits& limits, const QueueBounds& bounds) {
  if (absl::Status s = CheckCapability(request.opcode, limits); !s.ok()) return s;
  const bool read = request.opcode == Opcode::kRead;
  const uint32_t max_sges = read ? std::min(bounds.max_sges, limits.max_read_sges) : bounds.max_sges;
  uint64_t length = 0;
  if (absl::Status s = CheckSges(request.sges, limits, max_sges, &length); !s.ok()) return s;
  if ((request.flags & kInline) != 0) {
    if (!IsSendOrWrite(request.opcode)) return absl::InvalidArgumentError("only sends and writes can be inline");
    if (length > bounds.max_inline) {
      return absl::InvalidArgumentError(absl::StrCat(length, " bytes inline, at most ", bounds.max_inline));
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
  if (request.opcode == Opcode::kBindWindow) {
    if (!request.sges.empty()) return absl::InvalidArgumentError("a bind has no sges");
    constexpr uint32_t kRemote = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    if ((request.bind.access & ~kRemote) != 0) {
      return absl::InvalidArgumentError("a window gives remote rights and no others");
    }
  }
  if (request.opcode == Opcode::kLocalInvalidate && !request.sges.empty()) {
    return absl::InvalidArgumentError("an invalidate has no sges");
  }
  return absl::OkStatus();
}

absl::Status CheckReceive(const ReceiveRequest& request, const Limits& limits, const QueueBounds& bounds) {
  uint64_t length = 0;
  return CheckSges(request.sges, limits, bounds.max_sges, &length);
}

absl::Status QueueFull(uint32_t depth) {
  return absl::ResourceExhaustedError(absl::StrCat("the queue has ", depth, " requests; poll for completions"));
}

template <typename Request>
Request& Batch<Request>::Add(uint64_t wr_id) {
  Request& request = requests_[size_];
  request = Request{};
  request.wr_id = wr_id;
  if (size_ > 0) requests_[size_ - 1].next = &request;
  ++size_;
  return request;
}

template <typename Request>
void Batch<Request>::SetSges(absl::Span<const Sge> sges, bool never_none) {
  Request& request = requests_[size_ - 1];
  ibv_sge* const first = &sges_[sges_used_];
  ibv_sge* to = first;
  for (const Sge& sge : sges) {
    if (sge.length == 0) continue;
    *to++ = {reinterpret_cast<uint64_t>(sge.address), sge.length, sge.lkey};
  }
  if (to == first && never_none) *to++ = {0, 0, 0};
  request.sg_list = first;
  request.num_sge = static_cast<int>(to - first);
  sges_used_ += static_cast<size_t>(to - first);
}

template <typename Request>
Posted Batch<Request>::PostTo(ibv_qp* queue_pair) {
  Request* bad = first();
  const int error = PostChain(queue_pair, first(), &bad);
  const Posted posted = {size_, Accepted(error, bad), error};
  Clear();
  return posted;
}

template class Batch<ibv_send_wr>;
template class Batch<ibv_recv_wr>;

ibv_send_wr& AddSend(const SendRequest& request, uint64_t wr_id, bool never_none, SendBatch* batch) {
  ibv_send_wr& to = batch->Add(wr_id);
  to.opcode = ToWire(request.opcode);
  to.send_flags = ToWire(request.flags);
  switch (request.opcode) {
    case Opcode::kSendWithImm:
    case Opcode::kWriteWithImm:
      to.imm_data = htonl(request.immediate);
      break;
    case Opcode::kSendWithInvalidate:
    case Opcode::kLocalInvalidate:
      to.invalidate_rkey = request.rkey;
      break;
    default:
      break;
  }
  if (IsAtomic(request.opcode)) {
    const bool swap = request.opcode == Opcode::kCompareSwap;
    to.wr.atomic.remote_addr = request.remote_address;
    to.wr.atomic.rkey = request.rkey;
    to.wr.atomic.compare_add = swap ? request.compare : request.swap_or_add;
    to.wr.atomic.swap = swap ? request.swap_or_add : 0;
  } else {
    to.wr.rdma.remote_addr = request.remote_address;
    to.wr.rdma.rkey = request.rkey;
  }
  batch->SetSges(request.sges, never_none);
  return to;
}

void AddReceive(const ReceiveRequest& request, uint64_t wr_id, bool never_none, ReceiveBatch* batch) {
  batch->Add(wr_id);
  batch->SetSges(request.sges, never_none);
}

}  // namespace tokamak::verbs::ibv
