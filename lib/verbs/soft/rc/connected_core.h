// ConnectedCore is a queue pair of a reliable connection as the NIC sees it: state, peer, and both
// halves of the protocol. SoftQueuePair is the owner's half.
//
// Thread rule: the NIC's mutex, except where a member says otherwise.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"
#include "lib/verbs/soft/rc/requester.h"
#include "lib/verbs/soft/rc/responder.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/queue_pair_core.h"
#include "lib/verbs/soft/state/work_queue.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class ConnectedCore final : public QueuePairCore {
 public:
  ConnectedCore(NicState& nic_state, QueuePairParts parts, const QueuePairOptions& options,
                std::unique_ptr<Congestion> congestion);
  ~ConnectedCore() override;

  ConnectedCore* connected() override { return this; }
  Asker asker() const REQUIRES_NIC_MUTEX { return {domain(), life_}; }

  // As of the last step.
  const Address& peer() const REQUIRES_NIC_MUTEX { return attributes_.peer; }  // as fabrics write it
  uint32_t peer_number() const REQUIRES_NIC_MUTEX { return attributes_.peer_number; }
  uint32_t mtu() const REQUIRES_NIC_MUTEX { return attributes_.path_mtu; }
  Access remote_access() const REQUIRES_NIC_MUTEX { return attributes_.remote_access; }
  const ReliabilityOptions& reliability() const REQUIRES_NIC_MUTEX { return attributes_.reliability; }

  // True if it has taken something of its peer since it became ready to receive.
  bool heard() const REQUIRES_NIC_MUTEX { return taken() > taken_before_; }

  // Walks as QueuePair::Modify does; `limits` bound the path MTU (active_mtu) and the READ depths
  // (max_reads).
  absl::Status Modify(QueuePairState state, const QueuePairAttributes& attributes,
                      const Limits& limits) REQUIRES_NIC_MUTEX;

  void Fail(CompletionStatus send_status, CompletionStatus receive_status,
            uint32_t provider_code) override REQUIRES_NIC_MUTEX;
  void ForgetCompletions() override REQUIRES_NIC_MUTEX;
  void Receive(const Packet& packet) override REQUIRES_NIC_MUTEX;
  void FinishTurn() override REQUIRES_NIC_MUTEX;
  void Answer() override REQUIRES_NIC_MUTEX;
  bool Emit() override REQUIRES_NIC_MUTEX;
  void EmitAnswer() override REQUIRES_NIC_MUTEX { responder_.EmitAnswer(); }
  bool Notify(Port& port) override REQUIRES_NIC_MUTEX;
  uint64_t rate() const override REQUIRES_NIC_MUTEX { return congestion_->rate(); }

  // Returns false if the rate allows no packet yet; the queue pair will be ready then.
  bool MaySend() REQUIRES_NIC_MUTEX { return !paces_ || Pace(); }

  // Counts `packet`, which is whole in the outbox, against the rate.
  void OnSend(const Packet& packet) REQUIRES_NIC_MUTEX {
    if (paces_) congestion_->OnSend(nic_state_.alarms.now(), EthernetBytes(packet));
  }

  // Returns when the rate lets the next packet leave; never before now.
  base::Time NextSend() REQUIRES_NIC_MUTEX {
    const base::Time now = nic_state_.alarms.now();
    return paces_ && rate() != 0 ? std::max(now, congestion_->NextSend(now)) : now;
  }

  Packet& AddPacket(PacketOpcode opcode, uint64_t sequence) REQUIRES_NIC_MUTEX;

  void MarkPatientAnswer() REQUIRES_NIC_MUTEX { nic_state_.AnswerSoon(turns_); }
  void WaitForReads(bool first) REQUIRES_NIC_MUTEX { nic_state_.WaitForReads(turns_, first); }
  void WaitToSend(bool first) REQUIRES_NIC_MUTEX { nic_state_.WaitToSend(turns_, first); }

  SendQueue sends;

 private:
  uint64_t taken() const REQUIRES_NIC_MUTEX { return counters.answers_taken + counters.requests_executed; }
  absl::Status ToInit(const QueuePairAttributes& attributes) REQUIRES_NIC_MUTEX;
  absl::Status ToReadyToReceive(const QueuePairAttributes& attributes, const Limits& limits) REQUIRES_NIC_MUTEX;
  absl::Status ToReadyToSend(const QueuePairAttributes& attributes, const Limits& limits) REQUIRES_NIC_MUTEX;
  void ToReset() REQUIRES_NIC_MUTEX;
  bool Pace() REQUIRES_NIC_MUTEX;
  void OnMarked(const Packet& packet) REQUIRES_NIC_MUTEX;

  QueuePairLife life_ GUARDED_BY_NIC_MUTEX;
  const std::unique_ptr<Congestion> congestion_ GUARDED_BY_NIC_MUTEX;
  const bool paces_;
  const Ecn ecn_;
  QueuePairAttributes attributes_ GUARDED_BY_NIC_MUTEX;

  Requester requester_ GUARDED_BY_NIC_MUTEX;
  Responder responder_ GUARDED_BY_NIC_MUTEX;

  uint64_t taken_before_ GUARDED_BY_NIC_MUTEX = 0;  // by earlier connections
  bool notified_ GUARDED_BY_NIC_MUTEX = false;      // true if ever, last at notified_at_
  base::Time notified_at_ GUARDED_BY_NIC_MUTEX;
  Alarm pace_ GUARDED_BY_NIC_MUTEX;
};

}  // namespace tokamak::verbs::soft
