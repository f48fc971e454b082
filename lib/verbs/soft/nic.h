// Nic is the software NIC itself: it hands the port's packets to the queue pairs, and theirs to the
// port.
//
// A turn begins when packets arrive, a doorbell rings, an alarm is due or the port takes packets
// again; it does all work, then sends one batch for all queue pairs. One mutex guards all state: a
// turn takes it once, and owners' threads take it for control calls. Posting and polling go without
// it, through rings.
//
// Law: before the mutex is released, whoever must act next is woken: the owner of a new completion,
// or the NIC itself if a packet could still be sent.
// Thread rule: as each method says. Made and deleted on the NIC loop's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/trace.h"
#include "lib/verbs/datagrams.h"
#include "lib/verbs/device_watches.h"
#include "lib/verbs/soft/cm/management.h"
#include "lib/verbs/soft/device_options.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/queue_pair_table.h"
#include "lib/verbs/soft/rc/connected_core.h"
#include "lib/verbs/soft/state/doorbells.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "lib/verbs/soft/state/queue_pair_core.h"
#include "lib/verbs/soft/state/secret_numbers.h"
#include "lib/verbs/soft/ud/datagram_core.h"
#include "lib/verbs/soft/ud/multicast_groups.h"
#include "lib/verbs/soft/waiting_mads.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class Nic final : public Management, public std::enable_shared_from_this<Nic> {
 public:
  // Deleted through DeviceOptions::run_on_nic_loop with the last reference.
  static absl::StatusOr<std::shared_ptr<Nic>> Open(base::EventLoop& loop, Fabric& fabric, base::Trace& trace,
                                                   const DeviceOptions& options);
  ~Nic() override;

  // Must be called before anybody else knows the NIC.
  void SetManager(std::unique_ptr<ManagementHandler> manager) {
    NicLock lock(mutex_);
    manager_ = std::move(manager);
  }

  // An owner's call: holds the mutex, and at its end wakes whoever must act next.
  class ABSL_SCOPED_LOCKABLE Control final {
   public:
    explicit Control(Nic& nic) ABSL_EXCLUSIVE_LOCK_FUNCTION(kNicMutex) : nic_(nic) { nic_.mutex_.Lock(); }
    ~Control() ABSL_UNLOCK_FUNCTION() {
      nic_.LeaveControl();
      nic_.mutex_.Unlock();
    }
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

   private:
    Nic& nic_;
  };

  // Down to watches(): any thread, no mutex.
  void RingDoorbell(QueuePairCore& queue_pair);

  uint32_t NextKey(uint32_t key) const ABSL_NO_THREAD_SAFETY_ANALYSIS { return nic_state_.keys.NextKey(key); }

  // Runs `call` on the NIC loop's thread and waits for it.
  void RunOnLoop(const std::function<void()>& call) const;

  DeviceWatches& watches() { return watches_; }

  // The rest: any thread, inside a Control.
  DomainId NewDomain() REQUIRES_NIC_MUTEX { return next_domain_++; }
  absl::StatusOr<uint32_t> Register(DomainId domain, const RegionMemory& memory, Access access) REQUIRES_NIC_MUTEX;
  absl::Status Reregister(uint32_t key, DomainId domain, const RegionMemory& memory, Access access) REQUIRES_NIC_MUTEX;
  void Deregister(uint32_t key) REQUIRES_NIC_MUTEX;
  absl::StatusOr<WindowId> CreateWindow(DomainId domain) REQUIRES_NIC_MUTEX;
  void DestroyWindow(const WindowId& window) REQUIRES_NIC_MUTEX;

  // Makes a queue pair that lives until Destroy; the NIC chooses its number and source port.
  absl::StatusOr<ConnectedCore*> CreateQueuePair(QueuePairParts parts,
                                                 const QueuePairOptions& options) REQUIRES_NIC_MUTEX;
  absl::StatusOr<DatagramCore*> CreateDatagramQueuePair(QueuePairParts parts,
                                                        const DatagramQueuePairOptions& options) REQUIRES_NIC_MUTEX;
  void Destroy(QueuePairCore* queue_pair) REQUIRES_NIC_MUTEX;
  absl::Status ModifyByOwner(ConnectedCore& queue_pair, QueuePairState state,
                             const QueuePairAttributes& attributes) REQUIRES_NIC_MUTEX;
  absl::Status ModifyByOwner(DatagramCore& queue_pair, QueuePairState state,
                             const DatagramAttributes& attributes) REQUIRES_NIC_MUTEX;

  // Called on the NIC loop's thread: Attach with a queue pair that is not a member yet, Detach with
  // a member.
  absl::Status Attach(const Address& group, DatagramCore& queue_pair) REQUIRES_NIC_MUTEX;
  void Detach(const Address& group, DatagramCore& queue_pair) REQUIRES_NIC_MUTEX;

  // Reports one kReceiveLimit when fewer than `limit` receives are left, which may be now.
  void ArmShared(SharedReceives& receives, uint32_t limit) REQUIRES_NIC_MUTEX;

  // Moves its queue pairs to Error and ends its events.
  void CloseShared(SharedReceives& receives) REQUIRES_NIC_MUTEX;

  DeviceCounters counters() const REQUIRES_NIC_MUTEX;
  absl::StatusOr<QueuePairCounters> queue_pair_counters(uint32_t number) const REQUIRES_NIC_MUTEX;

  std::shared_ptr<Management> Share() override { return shared_from_this(); }
  NicMutex& mutex() override { return mutex_; }
  const Limits& limits() const override { return limits_; }
  const Address& address() const override { return address_; }
  AlarmClock& alarms() override REQUIRES_NIC_MUTEX { return nic_state_.alarms; }
  SecretNumbers& numbers() override REQUIRES_NIC_MUTEX { return manager_numbers_; }
  NumberShare share() const override REQUIRES_NIC_MUTEX { return port_->numbers(); }
  absl::Status Serve(uint64_t service_id) override REQUIRES_NIC_MUTEX { return port_->Serve(service_id); }
  void Withdraw(uint64_t service_id) override REQUIRES_NIC_MUTEX { port_->Withdraw(service_id); }
  void Trace(base::TraceKind kind, uint32_t number, uint64_t size) override REQUIRES_NIC_MUTEX {
    nic_state_.Trace(kind, number, size);
  }
  void SendMad(const Address& peer, absl::Span<const uint8_t> mad) override REQUIRES_NIC_MUTEX;
  bool Exists(uint32_t number) const override REQUIRES_NIC_MUTEX { return Connected(number) != nullptr; }
  QueuePairState State(uint32_t number) const override REQUIRES_NIC_MUTEX { return Connected(number)->state(); }
  bool Heard(uint32_t number) const override REQUIRES_NIC_MUTEX { return Connected(number)->heard(); }
  base::EventLoop& OwnerLoop(uint32_t number) const override REQUIRES_NIC_MUTEX {
    return Connected(number)->send_ring().loop();
  }
  absl::Status Modify(uint32_t number, QueuePairState state,
                      const QueuePairAttributes& attributes) override REQUIRES_NIC_MUTEX;
  void Watch(uint32_t number, bool watched) override REQUIRES_NIC_MUTEX { Connected(number)->watched = watched; }
  void HoldNumber(uint32_t number) override REQUIRES_NIC_MUTEX { table_.Hold(number); }
  void ReleaseNumber(uint32_t number) override REQUIRES_NIC_MUTEX { table_.Release(number); }

 private:
  // Batches in a turn, before the loop receives again.
  static constexpr int kBatchesPerTurn = 2;

  Nic(base::EventLoop& loop, base::Trace& trace, const DeviceOptions& options);
  absl::Status Plug(base::EventLoop& loop, Fabric& fabric, const DeviceOptions& options);

  // Turns.
  void OnPackets(absl::Span<const Packet> packets);
  void OnDoorbell();
  void OnPortReady();
  void OnTimer();
  void BeginTurn() ABSL_EXCLUSIVE_LOCK_FUNCTION(kNicMutex);
  void EndTurn() ABSL_UNLOCK_FUNCTION(kNicMutex);
  void Dispatch(const Packet& packet) REQUIRES_NIC_MUTEX;
  void DispatchToGroup(const Packet& packet) REQUIRES_NIC_MUTEX;
  void DispatchToManager(const Packet& packet) REQUIRES_NIC_MUTEX;
  void FinishTurns() REQUIRES_NIC_MUTEX;

  // Sending.
  void Transmit() REQUIRES_NIC_MUTEX;
  void Notify() REQUIRES_NIC_MUTEX;
  void Fill() REQUIRES_NIC_MUTEX;
  void AddAnswers() REQUIRES_NIC_MUTEX;
  bool FlushOutbox() REQUIRES_NIC_MUTEX;
  bool has_data() const REQUIRES_NIC_MUTEX {
    return nic_state_.anyone_next() || mads_.any_left() || !nic_state_.outbox.empty();
  }
  bool has_work() const REQUIRES_NIC_MUTEX {
    return (!port_busy_ && has_data()) || (!notifications_busy_ && !nic_state_.notifiers.empty());
  }

  void Publish() REQUIRES_NIC_MUTEX;
  void EndOverrun(CompletionRing& ring) REQUIRES_NIC_MUTEX;
  void SettleDepartures() REQUIRES_NIC_MUTEX;
  void LeaveControl() REQUIRES_NIC_MUTEX;
  void Wake();
  absl::Status Reserve(QueuePairParts* parts) REQUIRES_NIC_MUTEX;
  ConnectedCore* Connected(uint32_t number) const REQUIRES_NIC_MUTEX {
    QueuePairCore* const queue_pair = table_.Find(number);
    return queue_pair == nullptr ? nullptr : queue_pair->connected();
  }
  uint32_t PortPackets() const REQUIRES_NIC_MUTEX;
  std::unique_ptr<Congestion> MakeOwnCongestion() const REQUIRES_NIC_MUTEX;

  const DeviceOptions options_;
  mutable NicMutex mutex_;
  SecretNumbers numbers_ GUARDED_BY_NIC_MUTEX;
  SecretNumbers manager_numbers_ GUARDED_BY_NIC_MUTEX;
  std::atomic<bool> woken_{false};  // true if the doorbell was raised and has not been answered
  Doorbells doorbells_;
  NicState nic_state_;
  QueuePairTable table_ GUARDED_BY_NIC_MUTEX;
  MulticastGroups groups_ GUARDED_BY_NIC_MUTEX;
  QueuePairCounters gone_ GUARDED_BY_NIC_MUTEX;  // of destroyed queue pairs
  DomainId next_domain_ GUARDED_BY_NIC_MUTEX = 1;
  WaitingMads mads_ GUARDED_BY_NIC_MUTEX;
  DeviceWatches watches_;
  bool in_turn_ GUARDED_BY_NIC_MUTEX = false;
  bool port_busy_ GUARDED_BY_NIC_MUTEX = false;           // true if it took no more data
  bool notifications_busy_ GUARDED_BY_NIC_MUTEX = false;  // true if it took no notification
  bool walking_ GUARDED_BY_NIC_MUTEX = false;             // true while the connection manager walks a queue pair
  std::unique_ptr<ManagementHandler> manager_ GUARDED_BY_NIC_MUTEX;

  std::unique_ptr<base::Signal> doorbell_;
  std::unique_ptr<Port> port_ GUARDED_BY_NIC_MUTEX;
  Limits limits_;
  Address address_;
};

}  // namespace tokamak::verbs::soft
