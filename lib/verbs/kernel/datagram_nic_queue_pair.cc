#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <utility>

#include "lib/verbs/kernel/nic_queue_pair.h"
#include "lib/verbs/kernel/program/translate.h"

namespace tokamak::verbs::kernel {
namespace {

class DatagramNicQueuePair final : public NicQueuePair {
 public:
  DatagramNicQueuePair(const ObjectTable& objects, std::unique_ptr<DatagramQueuePair> queue_pair)
      : objects_(objects), queue_pair_(std::move(queue_pair)) {}

  Service service() const override { return Service::kDatagram; }
  uint32_t number() const override { return queue_pair_->number(); }
  QueuePairState state() const override { return queue_pair_->state(); }

  absl::Status Modify(QueuePairState to, const ib_uverbs_modify_qp& set) override {
    DatagramAttributes attributes;
    if (to != QueuePairState::kReset && to != QueuePairState::kError) attributes.qkey = set.qkey;
    if (to == QueuePairState::kReadyToSend && state() != to) attributes.send_psn = set.sq_psn;
    return queue_pair_->Modify(to, attributes);
  }

  Added Add(uint64_t id, const rxe_send_wr& from, SendFlags flags, absl::Span<const Sge> sges) override {
    if (from.opcode != IBV_WR_SEND && from.opcode != IBV_WR_SEND_WITH_IMM) return Added::kRefused;
    const auto* const to = objects_.Find<AddressObject>(from.wr.ud.ah_num);
    if (to == nullptr) return Added::kRefused;
    DatagramRequest& request = batch_[batched_];
    request = DatagramRequest();
    request.id = id;
    request.flags = flags;
    request.sges = sges;
    if (from.opcode == IBV_WR_SEND_WITH_IMM) request.immediate = ntohl(from.ex.imm_data);
    request.to = to->address.get();
    request.queue_pair_number = from.wr.ud.remote_qpn;
    request.qkey = from.wr.ud.remote_qkey;
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

  int Attach(const Address& group) override { return ErrnoOf(queue_pair_->Attach(group)); }
  int Detach(const Address& group) override { return queue_pair_->Detach(group).ok() ? 0 : EINVAL; }

 private:
  const ObjectTable& objects_;
  std::array<DatagramRequest, kBatch> batch_;
  size_t batched_ = 0;
  const std::unique_ptr<DatagramQueuePair> queue_pair_;
};

}  // namespace

int MakeDatagramQueuePair(UserDevice& device, DomainObject& domain, const ObjectTable& objects,
                          const NicQueuePairOptions& wanted, std::unique_ptr<NicQueuePair>* made) {
  const Limits& limits = device.nic().limits();
  DatagramQueuePairOptions options;
  options.send_queue = wanted.send_queue;
  options.receive_queue = wanted.receive_queue;
  options.shared_receives = wanted.shared_receives;
  options.max_send_requests = wanted.max_send_requests;
  options.max_receive_requests = wanted.max_receive_requests;
  options.max_sges = limits.max_sges;
  options.max_inline = limits.max_inline;
  absl::StatusOr<std::unique_ptr<DatagramQueuePair>> queue_pair =
      device.nic().datagrams()->CreateQueuePair(*domain.domain, options);
  if (!queue_pair.ok()) return ErrnoOf(queue_pair.status());
  *made = std::make_unique<DatagramNicQueuePair>(objects, *std::move(queue_pair));
  return 0;
}

}  // namespace tokamak::verbs::kernel
