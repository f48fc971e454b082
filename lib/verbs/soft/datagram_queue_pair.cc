#include "lib/verbs/soft/datagram_queue_pair.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/posting.h"

namespace tokamak::verbs::soft {
namespace {

Address GroupOf(const Address& group) {
  Address plain;
  plain.ip = group.ip;
  return plain;
}

}  // namespace

SoftDatagramQueuePair::SoftDatagramQueuePair(std::shared_ptr<Nic> nic, DatagramCore* core,
                                             const DatagramQueuePairOptions& options)
    : nic_(std::move(nic)), core_(core), max_sges_(options.max_sges), max_inline_(options.max_inline) {}

SoftDatagramQueuePair::~SoftDatagramQueuePair() {
  while (!groups_.empty()) Detach(*groups_.begin()).IgnoreError();  // cannot fail: it is a member
  Nic::Control control(*nic_);
  nic_->Destroy(core_);
}

PostResult SoftDatagramQueuePair::PostSend(absl::Span<const DatagramRequest> requests) {
  PostResult result = MaySend(state());
  if (!result.ok()) return result;
  for (const DatagramRequest& request : requests) {
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

absl::Status SoftDatagramQueuePair::Prepare(const DatagramRequest& request) {
  const uint64_t length = TotalLength(request.sges);
  if (absl::Status s = Check(request, length); !s.ok()) return s;
  DatagramQueue& sends = core_->sends;
  if (sends.full()) return QueueFull(sends.depth());
  DatagramSlot& slot = sends.next();
  const DatagramAddress& to = request.to->address();
  slot.id = request.id;
  slot.peer = ToFabricAddress(to.peer);
  slot.traffic_class = to.traffic_class;
  slot.queue_pair_number = request.queue_pair_number;
  slot.qkey = request.qkey;
  slot.has_immediate = request.immediate.has_value();
  slot.immediate = request.immediate.value_or(0);
  slot.signaled = (request.flags & kSignaled) != 0;
  slot.solicited = (request.flags & kSolicited) != 0;
  SetSource(request.sges, (request.flags & kInline) != 0, length, sends.next_inline(), &slot);
  sends.Prepare();
  return absl::OkStatus();
}

absl::Status SoftDatagramQueuePair::Check(const DatagramRequest& request, uint64_t length) const {
  if (request.sges.size() > max_sges_) {
    return absl::InvalidArgumentError(absl::StrCat(request.sges.size(), " sges, at most ", max_sges_));
  }
  if (absl::Status s = CheckLength(length, nic_->limits()); !s.ok()) return s;
  if ((request.flags & kInline) != 0 && length > max_inline_) {
    return absl::InvalidArgumentError(absl::StrCat(length, " bytes inline, at most ", max_inline_));
  }
  const auto* to = dynamic_cast<const SoftAddressHandle*>(request.to);
  if (to == nullptr || to->nic() != nic_.get() || to->domain() != core_->domain()) {
    return absl::InvalidArgumentError("a datagram needs an address handle of its queue pair's domain");
  }
  if (request.queue_pair_number > kPsnMask) return absl::InvalidArgumentError("queue pair numbers have 24 bits");
  return absl::OkStatus();
}

PostResult SoftDatagramQueuePair::PostReceive(absl::Span<const ReceiveRequest> requests) {
  return PostReceivesTo(*nic_, *core_, requests, max_sges_);
}

absl::Status SoftDatagramQueuePair::Modify(QueuePairState state, const DatagramAttributes& attributes) {
  Nic::Control control(*nic_);
  return nic_->ModifyByOwner(*core_, state, attributes);
}

absl::Status SoftDatagramQueuePair::Attach(const Address& group) {
  const Address plain = GroupOf(group);
  if (!plain.is_multicast() || plain.is_ipv4() != nic_->address().is_ipv4()) {
    return absl::InvalidArgumentError(
        absl::StrCat(plain.ToString(), " is no multicast address of the family of ", nic_->address().ToString()));
  }
  if (groups_.count(plain) > 0) return absl::OkStatus();
  absl::Status status;
  nic_->RunOnLoop([&] {
    Nic::Control control(*nic_);
    status = nic_->Attach(plain, *core_);
  });
  if (status.ok()) groups_.insert(plain);
  return status;
}

absl::Status SoftDatagramQueuePair::Detach(const Address& group) {
  const Address plain = GroupOf(group);
  if (groups_.erase(plain) == 0) {
    return absl::NotFoundError(absl::StrCat("the queue pair is not in the group ", plain.ToString()));
  }
  nic_->RunOnLoop([&] {
    Nic::Control control(*nic_);
    nic_->Detach(plain, *core_);
  });
  return absl::OkStatus();
}

}  // namespace tokamak::verbs::soft
