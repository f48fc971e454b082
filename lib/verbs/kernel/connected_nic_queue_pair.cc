#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "lib/verbs/kernel/nic_queue_pair.h"
#include "lib/verbs/kernel/program/translate.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr uint32_t kRemoteAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

bool OpcodeOf(uint32_t number, Opcode* opcode) {
  switch (number) {
    case IBV_WR_RDMA_WRITE:
      *opcode = Opcode::kWrite;
      return true;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      *opcode = Opcode::kWriteWithImm;
      return true;
    case IBV_WR_SEND:
      *opcode = Opcode::kSend;
      return true;
    case IBV_WR_SEND_WITH_IMM:
      *opcode = Opcode::kSendWithImm;
      return true;
    case IBV_WR_RDMA_READ:
      *opcode = Opcode::kRead;
      return true;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      *opcode = Opcode::kCompareSwap;
      return true;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      *opcode = Opcode::kFetchAdd;
      return true;
    case IBV_WR_SEND_WITH_INV:
      *opcode = Opcode::kSendWithInvalidate;
      return true;
    case IBV_WR_LOCAL_INV:
      *opcode = Opcode::kLocalInvalidate;
      return true;
    case IBV_WR_BIND_MW:
      *opcode = Opcode::kBindWindow;
      return true;
    default:
      return false;
  }
}

// A device answers whatever its program does; here the peer has to get a processor first. So short
// time-outs are quadrupled: a time-out may be noticed as late as that (9.7.6.1.3).
uint8_t PatientTimeoutCode(uint8_t code) {
  constexpr uint8_t kPatient = 16;  // 268 ms
  if (code == 0) return kLongestTimeout;
  return std::max(code, std::min<uint8_t>(code + 2, kPatient));
}

QueuePairAttributes AttributesOf(const ib_uverbs_modify_qp& set) {
  QueuePairAttributes attributes;
  attributes.remote_access = AccessOf(set.qp_access_flags);
  attributes.peer = AddressOfGid(set.dest.dgid);
  attributes.peer_number = set.dest_qp_num;
  attributes.receive_psn = set.rq_psn;
  attributes.path_mtu = MtuBytes(set.path_mtu);
  attributes.send_psn = set.sq_psn;
  ReliabilityOptions& reliability = attributes.reliability;
  reliability.ack_timeout = AckTimeout(PatientTimeoutCode(set.timeout));
  reliability.retry_count = std::min(set.retry_cnt, kMaxRetryCount);
  reliability.rnr_retry_count = set.rnr_retry;  // 7: for ever
  reliability.rnr_delay = NotReadyDelay(set.min_rnr_timer);
  reliability.reads_outstanding = set.max_rd_atomic;
  reliability.reads_served = set.max_dest_rd_atomic;
  return attributes;
}

class ConnectedNicQueuePair final : public NicQueuePair {
 public:
  ConnectedNicQueuePair(const ObjectTable& objects, std::unique_ptr<QueuePair> queue_pair)
      : objects_(objects), queue_pair_(std::move(queue_pair)) {}

  Service service() const override { return Service::kConnected; }
  uint32_t number() const override { return queue_pair_->number(); }
  QueuePairState state() const override { return queue_pair_->state(); }

  absl::Status Modify(QueuePairState to, const ib_uverbs_modify_qp& set) override {
    const bool has_attributes = to != QueuePairState::kReset && to != QueuePairState::kError;
    return has_attributes ? queue_pair_->Modify(to, AttributesOf(set)) : queue_pair_->Modify(to);
  }

  Added Add(uint64_t id, const rxe_send_wr& from, SendFlags flags, absl::Span<const Sge> sges) override {
    SendRequest& request = batch_[batched_];
    request = SendRequest();
    if (!OpcodeOf(from.opcode, &request.opcode)) return Added::kRefused;
    request.id = id;
    request.flags = flags;
    request.sges = sges;
    switch (request.opcode) {
      case Opcode::kCompareSwap:
        request.compare = from.wr.atomic.compare_add;
        request.swap_or_add = from.wr.atomic.swap;
        request.remote_address = from.wr.atomic.remote_addr;
        request.rkey = from.wr.atomic.rkey;
        break;
      case Opcode::kFetchAdd:
        request.swap_or_add = from.wr.atomic.compare_add;
        request.remote_address = from.wr.atomic.remote_addr;
        request.rkey = from.wr.atomic.rkey;
        break;
      case Opcode::kSendWithInvalidate:
      case Opcode::kLocalInvalidate:
        request.rkey = from.ex.invalidate_rkey;
        break;
      case Opcode::kBindWindow:
        if (batched_ > 0) return Added::kLater;  // a window's key changes when the bind is posted
        if (!ToBind(from, &request)) return Added::kRefused;
        break;
      default:
        request.immediate = ntohl(from.ex.imm_data);
        request.remote_address = from.wr.rdma.remote_addr;
        request.rkey = from.wr.rdma.rkey;
    }
    ++batched_;
    return Added::kYes;
  }
  size_t batched() const override { return batched_; }

  PostResult PostBatch() override {
    return queue_pair_->PostSend(absl::MakeConstSpan(batch_.data(), std::exchange(batched_, 0)));
  }
  PostResult PostReceive(absl::Span<const ReceiveRequest> requests) override {
    return queue_pair_->PostReceive(requests);
  }

  int Attach(const Address&) override { return EINVAL; }
  int Detach(const Address&) override { return EINVAL; }

 private:
  // A bind of no bytes, which closes a type 1 window, becomes an invalidate.
  bool ToBind(const rxe_send_wr& from, SendRequest* request) const {
    const auto& wanted = from.wr.mw;
    const auto* const window =
        objects_.FindIf<WindowObject>([&](const WindowObject& one) { return one.window->rkey() == wanted.mw_rkey; });
    if (window == nullptr) return false;
    if (wanted.length == 0) {
      request->opcode = Opcode::kLocalInvalidate;
      request->rkey = wanted.mw_rkey;
      return true;
    }
    const auto* const region =
        objects_.FindIf<RegionObject>([&](const RegionObject& one) { return one.region->lkey() == wanted.mr_lkey; });
    const bool zero_based = (wanted.access & IBV_ACCESS_ZERO_BASED) != 0;
    if (region == nullptr || !soft::ChooseNextKey(*window->window, wanted.rkey, zero_based)) return false;
    request->bind.window = window->window.get();
    request->bind.region = region->region.get();
    request->bind.address = reinterpret_cast<uint8_t*>(wanted.addr);
    request->bind.length = wanted.length;
    request->bind.access = AccessOf(wanted.access & kRemoteAccess);
    return true;
  }

  const ObjectTable& objects_;
  std::array<SendRequest, kBatch> batch_;
  size_t batched_ = 0;
  const std::unique_ptr<QueuePair> queue_pair_;
};

}  // namespace

int MakeConnectedQueuePair(UserDevice& device, DomainObject& domain, const ObjectTable& objects,
                           const NicQueuePairOptions& wanted, std::unique_ptr<NicQueuePair>* made) {
  const Limits& limits = device.nic().limits();
  QueuePairOptions options;
  options.send_queue = wanted.send_queue;
  options.receive_queue = wanted.receive_queue;
  options.shared_receives = wanted.shared_receives;
  options.max_send_requests = wanted.max_send_requests;
  options.max_receive_requests = wanted.max_receive_requests;
  options.max_sges = limits.max_sges;
  options.max_inline = limits.max_inline;
  absl::StatusOr<std::unique_ptr<QueuePair>> queue_pair = domain.domain->CreateQueuePair(options);
  if (!queue_pair.ok()) return ErrnoOf(queue_pair.status());
  *made = std::make_unique<ConnectedNicQueuePair>(objects, *std::move(queue_pair));
  return 0;
}

}  // namespace tokamak::verbs::kernel
