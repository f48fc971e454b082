// DatagramCore is a datagram queue pair as the NIC sees it: messages of one packet, out and in,
// that are not acknowledged. SoftDatagramQueuePair is the owner's half.
//
// Where lib/verbs/datagrams.h leaves a choice, it does as the kernel's Soft-RoCE does.
//
//        oldest_                  cursor_             tail
//          |  in the outbox, or     |  not begun        |
//          |  skipped behind those  |                   |
//
// Law: requests complete in order, each once, and none while the outbox holds its packet.
// Thread rule: the NIC's mutex, except where a member says otherwise.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "lib/verbs/datagrams.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/outbox.h"
#include "lib/verbs/soft/state/queue_pair_core.h"
#include "lib/verbs/soft/state/receives.h"
#include "lib/verbs/soft/state/work_queue.h"

namespace tokamak::verbs::soft {

class DatagramCore final : public QueuePairCore {
 public:
  // `port` is the device's address, as fabrics write it; `mtu` bounds the messages.
  DatagramCore(NicState& nic_state, QueuePairParts parts, const DatagramQueuePairOptions& options, const Address& port,
               uint32_t mtu);
  ~DatagramCore() override;

  // Walks as DatagramQueuePair::Modify describes, on the owner's thread.
  absl::Status Modify(QueuePairState to, const DatagramAttributes& attributes) REQUIRES_NIC_MUTEX;

  void Fail(CompletionStatus send_status, CompletionStatus receive_status,
            uint32_t provider_code) override REQUIRES_NIC_MUTEX;
  void ForgetCompletions() override REQUIRES_NIC_MUTEX;
  void Receive(const Packet& packet) override REQUIRES_NIC_MUTEX;
  void Answer() override REQUIRES_NIC_MUTEX;
  bool Emit() override REQUIRES_NIC_MUTEX;
  void OnDeparture() override REQUIRES_NIC_MUTEX;

  DatagramQueue sends;

 private:
  bool Leaves(DatagramSlot& slot, Share* share) REQUIRES_NIC_MUTEX;
  void AddPacket(const DatagramSlot& slot, Share* share) REQUIRES_NIC_MUTEX;
  void CompleteDeparted() REQUIRES_NIC_MUTEX;
  void CompleteOldest(CompletionStatus status, uint32_t provider_code) REQUIRES_NIC_MUTEX;
  void FlushSends(CompletionStatus first, uint32_t provider_code) REQUIRES_NIC_MUTEX;
  void Take(const Packet& packet, uint32_t length) REQUIRES_NIC_MUTEX;
  void Reset() REQUIRES_NIC_MUTEX;
  bool may_receive() const {
    return state() == QueuePairState::kReadyToReceive || state() == QueuePairState::kReadyToSend;
  }

  const Address port_;
  const uint32_t mtu_;
  uint32_t qkey_ GUARDED_BY_NIC_MUTEX;
  uint32_t psn_ GUARDED_BY_NIC_MUTEX = 0;  // the next packet's

  // Request indexes.
  uint64_t oldest_ GUARDED_BY_NIC_MUTEX = 0;
  uint64_t cursor_ GUARDED_BY_NIC_MUTEX = 0;
  size_t in_outbox_ GUARDED_BY_NIC_MUTEX = 0;  // packets known to be there

  Receives receives_ GUARDED_BY_NIC_MUTEX;
};

}  // namespace tokamak::verbs::soft
