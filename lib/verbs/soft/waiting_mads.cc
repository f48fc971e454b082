#include "lib/verbs/soft/waiting_mads.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/verbs/soft/fabric.h"

namespace tokamak::verbs::soft {

bool WaitingMads::Add(const Address& peer, absl::Span<const uint8_t> mad) {
  CHECK_EQ(mad.size(), kMadSize);
  if (mads_.size() >= kMaxMadsWaiting) return false;
  Mad& waiting = mads_.emplace_back();
  waiting.peer = ToFabricAddress(peer);
  std::copy(mad.begin(), mad.end(), waiting.bytes.begin());
  return true;
}

size_t WaitingMads::AddTo(Outbox& outbox) {
  const size_t before = added_;
  while (any_left() && !outbox.full()) {
    const Mad& mad = mads_[added_++];
    Packet& packet = outbox.Add(kManagementQueuePair);
    packet.opcode = PacketOpcode::kDatagramSendOnly;
    packet.destination = kManagementQueuePair;
    packet.psn = psn_;
    packet.qkey = kManagementQkey;
    packet.source_queue_pair = kManagementQueuePair;
    packet.peer = mad.peer;
    packet.payload[packet.slices++] = {mad.bytes.data(), kMadSize};
    psn_ = (psn_ + 1) & kPsnMask;
  }
  return added_ - before;
}

}  // namespace tokamak::verbs::soft
