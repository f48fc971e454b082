// Nic is the software NIC itself: what a port receives it hands to the queue pairs, what they have to say it sends.
//
// It works in turns. A turn begins when packets arrive, an owner rings the doorbell, an alarm is due or the port takes packets
// again; it does all that there is to do and then sends, for all queue pairs in one batch. All state is under one mutex, taken
// once per turn, and by owners' threads for control calls. Posting and polling take no lock: they go through the rings of
// work_queue.h and completion_ring.h.
//
// Law: no completion is written, and no packet is left unsent that could be sent, when the mutex is released without the
//      owner, or the NIC's next turn, having been woken.
// Thread rule: as each method says. Made on the NIC loop's thread; deleted there.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/verbs/device_watches.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/engine.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/management.h"
#include "lib/verbs/soft/nic_mutex.h"
#include "lib/verbs/soft/queue_pair_core.h"
#include "lib/verbs/soft/queue_pair_table.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

class Nic final : public Management, public std::enable_shared_from_this<Nic> {
 public:
  // Deleted through DeviceOptions::run_on_nic_loop when the last reference goes.
  static absl::StatusOr<std::shared_ptr<Nic>> Open(base::EventLoop& loop, Fabric& fabric, base::Trace& trace,
                                                   const DeviceOptions& options);
  ~Nic() override;

  // Before anybody else knows the NIC.
  void SetManager(std::unique_ptr<ManagementHandler> manager) { manager_ = std::move(manager); }

  // An owner's call: the mutex, and at the end a wake-up for whoever has something to do then.
  class Control final {
   public:
    explicit Control(Nic& nic) : nic_(nic) { nic_.mutex_.lock(); }
    ~Control() {
      nic_.LeaveControl();
      nic_.mutex_.unlock();
    }
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

   private:
    Nic& nic_;
  };

  // From any thread, without the mutex: `queue_pair` has requests for the NIC.
  void Ring(QueuePairCore& queue_pair);

  // The same: what a window's key will be after its next bind.
  uint32_t NextKey(uint32_t key) const { return engine_.keys.NextKey(key); }

  // The same: those who hear of its events.
  DeviceWatches& watches() { return watches_; }

  // The rest: any thread, inside a Control.
  DomainId NewDomain() { return next_domain_++; }
  absl::StatusOr<uint32_t> Register(DomainId domain, absl::Span<uint8_t> memory, Access access);
  void Deregister(uint32_t key);
  absl::StatusOr<WindowId> CreateWindow(DomainId domain);
  void DestroyWindow(const WindowId& window);

  // The queue pair lives until Destroy.
  absl::StatusOr<QueuePairCore*> CreateQueuePair(DomainId domain, const QueuePairOptions& options,
                                                 std::shared_ptr<CompletionRing> send_ring,
                                                 std::shared_ptr<CompletionRing> receive_ring,
                                                 std::shared_ptr<SharedReceives> shared_receives);
  void Destroy(QueuePairCore* queue_pair);
  absl::Status ModifyByOwner(QueuePairCore& queue_pair, QueuePairState state, const QueuePairAttributes& attributes);

  // One kReceiveLimit when fewer than `limit` are left, also when that is so already.
  void ArmShared(SharedReceives& receives, uint32_t limit);

  // The queue pairs that draw from it go to Error; nobody hears of it any more.
  void CloseShared(SharedReceives& receives);

  DeviceCounters counters() const;
  absl::StatusOr<QueuePairCounters> queue_pair_counters(uint32_t number) const;

  // Management.
  std::shared_ptr<Management> Share() override { return shared_from_this(); }
  NicMutex& mutex() override { return mutex_; }
  const Limits& limits() const override { return limits_; }
  const Address& address() const override { return address_; }
  AlarmClock& alarms() override { return engine_.alarms; }
  base::Random& random() override { return manager_random_; }
  void Trace(base::TraceKind kind, uint32_t number, uint64_t size) override { engine_.Trace(kind, number, size); }
  void SendMad(const Address& peer, absl::Span<const uint8_t> mad) override;
  bool Exists(uint32_t number) const override { return table_.Find(number) != nullptr; }
  QueuePairState State(uint32_t number) const override { return table_.Find(number)->state(); }
  base::EventLoop& OwnerLoop(uint32_t number) const override { return table_.Find(number)->send_ring().loop(); }
  absl::Status Modify(uint32_t number, QueuePairState state, const QueuePairAttributes& attributes) override;
  void Watch(uint32_t number, bool watched) override { table_.Find(number)->watched = watched; }
  void HoldNumber(uint32_t number) override { table_.Hold(number); }
  void ReleaseNumber(uint32_t number) override { table_.Release(number); }

 private:
  // A turn may send so many batches (of Outbox::kCapacity packets) before it lets the loop receive again.
  static constexpr int kBatchesPerTurn = 2;

  struct Mad {
    Address peer;  // as fabrics write it
    std::array<uint8_t, kMadSize> bytes;
  };

  Nic(base::EventLoop& loop, base::Trace& trace, const DeviceOptions& options);
  absl::Status Plug(base::EventLoop& loop, Fabric& fabric, const DeviceOptions& options);

  // Turns, on the NIC's thread.
  void OnPackets(absl::Span<const Packet> packets);
  void OnDoorbell();
  void OnPortReady();
  void OnTimer();
  void BeginTurn();
  void EndTurn();
  void Dispatch(const Packet& packet);
  void Drop(const Packet& packet, uint64_t* counter);
  void Settle();

  // Sending, in a turn.
  void Transmit();
  void Fill();
  void AddMads();
  bool FlushOutbox();
  bool has_work() const { return engine_.anyone_next() || mads_added_ < mads_.size() || !engine_.outbox.empty(); }

  // In a turn or a control call.
  void AnswerRings();
  void Publish();
  void EndOverrun(CompletionRing& ring);
  void LeaveControl();
  void Wake();
  uint32_t PortPackets() const;
  std::unique_ptr<Congestion> MakeCongestion() const;

  const DeviceOptions options_;
  mutable NicMutex mutex_;
  base::Random random_;
  base::Random manager_random_;
  std::atomic<bool> woken_{false};             // the doorbell was raised and has not been answered
  std::atomic<QueuePairCore*> rang_{nullptr};  // a stack, through next_rang
  Engine engine_;
  QueuePairTable table_;
  QueuePairCounters gone_;  // of queue pairs that were destroyed
  DomainId next_domain_ = 1;
  std::deque<Mad> mads_;
  size_t mads_added_ = 0;  // the first of them, which are in the outbox
  uint32_t mad_psn_ = 0;
  DeviceWatches watches_;
  bool in_turn_ = false;
  bool port_busy_ = false;
  bool walking_ = false;  // the connection manager changes a queue pair's state
  std::unique_ptr<ManagementHandler> manager_;

  std::unique_ptr<base::Signal> doorbell_;
  std::unique_ptr<Port> port_;
  Limits limits_;
  Address address_;
};

}  // namespace tokamak::verbs::soft
