// Management is the NIC's offer to its connection manager: datagrams on QP 1, alarms, and queue
// pairs to walk.
//
// The connection manager's state is under the NIC's mutex: owners' threads (calls, dropped handles)
// take it, and the NIC calls the ManagementHandler with it held.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/number_share.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/alarm.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/soft/state/secret_numbers.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

// Bytes of a management datagram (13.4.2).
constexpr size_t kMadSize = 256;

// Datagrams that may wait to be sent; further ones are dropped and counted.
constexpr size_t kMaxMadsWaiting = 1024;

class Management {
 public:
  virtual ~Management() = default;

  // Handles hold this, so that the NIC stays; the connection manager, which the NIC owns, must not.
  // Needs no lock.
  virtual std::shared_ptr<Management> Share() = 0;
  virtual NicMutex& mutex() = 0;
  virtual const Limits& limits() const = 0;
  virtual const Address& address() const = 0;  // the device's; udp_port 0: RoCE's

  // Alarms fire on the NIC's thread, under the mutex.
  virtual AlarmClock& alarms() REQUIRES_NIC_MUTEX = 0;

  // The connection manager's own stream.
  virtual SecretNumbers& numbers() REQUIRES_NIC_MUTEX = 0;

  // The share of IDs that it gives out; fixed for the NIC's life.
  virtual NumberShare share() const REQUIRES_NIC_MUTEX = 0;

  // See Port.
  virtual absl::Status Serve(uint64_t service_id) REQUIRES_NIC_MUTEX = 0;
  virtual void Withdraw(uint64_t service_id) REQUIRES_NIC_MUTEX = 0;

  virtual void Trace(base::TraceKind kind, uint32_t number, uint64_t size) REQUIRES_NIC_MUTEX = 0;

  // Sends kMadSize bytes (copied) from QP 1 to QP 1 of the device at `peer`, unreliably, in the
  // NIC's next batch.
  virtual void SendMad(const Address& peer, absl::Span<const uint8_t> mad) REQUIRES_NIC_MUTEX = 0;

  // Queue pairs go by number, since an owner may drop one at any time. It must exist, except for
  // Exists.
  virtual bool Exists(uint32_t number) const REQUIRES_NIC_MUTEX = 0;
  virtual QueuePairState State(uint32_t number) const REQUIRES_NIC_MUTEX = 0;

  // Returns true if the queue pair has taken something that its peer sent in this connection.
  virtual bool Heard(uint32_t number) const REQUIRES_NIC_MUTEX = 0;

  // Returns the loop of the queue pair, for its ConnectionEvents.
  virtual base::EventLoop& OwnerLoop(uint32_t number) const REQUIRES_NIC_MUTEX = 0;

  // Walks the queue pair as QueuePair::Modify does. Going to Error flushes it.
  virtual absl::Status Modify(uint32_t number, QueuePairState state,
                              const QueuePairAttributes& attributes) REQUIRES_NIC_MUTEX = 0;

  // Reports news of the queue pair to the ManagementHandler until it is gone, or `watched` is
  // false.
  virtual void Watch(uint32_t number, bool watched) REQUIRES_NIC_MUTEX = 0;

  // Keeps `number` from reuse (TIMEWAIT), even once its queue pair is gone.
  virtual void HoldNumber(uint32_t number) REQUIRES_NIC_MUTEX = 0;
  virtual void ReleaseNumber(uint32_t number) REQUIRES_NIC_MUTEX = 0;
};

enum class DatagramResult : uint8_t {
  kTaken,
  kNoMessage,  // not a CM MAD: dropped
  kRefused,    // a REQ beyond the bounds: its sender is asked whether it is there, or not answered
};

// Takes the NIC's news, with the mutex held, on the NIC's thread or inside an owner's call.
class ManagementHandler {
 public:
  virtual ~ManagementHandler() = default;

  // Takes a datagram to QP 1 with the right Q_Key, from packet.peer. The payload lives during the
  // call only.
  virtual DatagramResult OnMad(const Packet& packet) REQUIRES_NIC_MUTEX = 0;

  // Reports a valid request at a watched queue pair in ReadyToReceive: the peer is up. The call may
  // walk it to ReadyToSend.
  virtual void OnFirstData(uint32_t number) REQUIRES_NIC_MUTEX = 0;

  // Reports that a watched queue pair went to Error, not by Management::Modify. An immediate DREQ
  // would hide the reason from the peer: see kFailedCode.
  virtual void OnError(uint32_t number) REQUIRES_NIC_MUTEX = 0;

  // Reports the drop of a watched queue pair; its number is invalid on return.
  virtual void OnDropped(uint32_t number) REQUIRES_NIC_MUTEX = 0;
};

}  // namespace tokamak::verbs::soft
