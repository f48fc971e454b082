// Management is the NIC's offer to its connection manager: datagrams on QP 1, alarms, and queue
// pairs to walk.
//
// Owners' threads (Connect, Listen, Accept, dropped handles) and the NIC's thread (datagrams,
// alarms, news of queue pairs) call the connection manager. All its state is under the NIC's mutex:
// owners' threads take it, the NIC calls the ManagementHandler with it held.
//
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

// Bytes of a management datagram. (13.4.2)
constexpr size_t kMadSize = 256;

// Datagrams that may wait to be sent; further ones are dropped and counted, as in a network.
constexpr size_t kMaxMadsWaiting = 1024;

class Management {
 public:
  virtual ~Management() = default;

  // Needs no lock. A Connection or a Listener holds this, so that the NIC stays; the connection
  // manager, which the NIC owns, must not.
  virtual std::shared_ptr<Management> Share() = 0;
  virtual NicMutex& mutex() = 0;
  virtual const Limits& limits() const = 0;
  virtual const Address& address() const = 0;  // the device's; udp_port is 0 if it is RoCE's

  // Alarms fire on the NIC's thread, under the mutex.
  virtual AlarmClock& alarms() REQUIRES_NIC_MUTEX = 0;

  // A stream for the connection manager alone.
  virtual SecretNumbers& numbers() REQUIRES_NIC_MUTEX = 0;

  // The share of the IDs that it gives out. Fixed for the NIC's life.
  virtual NumberShare share() const REQUIRES_NIC_MUTEX = 0;

  // See Port.
  virtual absl::Status Serve(uint64_t service_id) REQUIRES_NIC_MUTEX = 0;
  virtual void Withdraw(uint64_t service_id) REQUIRES_NIC_MUTEX = 0;

  virtual void Trace(base::TraceKind kind, uint32_t number, uint64_t size) REQUIRES_NIC_MUTEX = 0;

  // Sends `mad` (kMadSize bytes, copied) from QP 1 to QP 1 of the device at `peer`, unreliably,
  // with the NIC's next batch.
  virtual void SendMad(const Address& peer, absl::Span<const uint8_t> mad) REQUIRES_NIC_MUTEX = 0;

  // Queue pairs go by number, since an owner may drop one at any time.
  virtual bool Exists(uint32_t number) const REQUIRES_NIC_MUTEX = 0;
  virtual QueuePairState State(uint32_t number) const REQUIRES_NIC_MUTEX = 0;  // must exist

  // Returns true if an existing queue pair has taken something that its peer sent, in this
  // connection.
  virtual bool Heard(uint32_t number) const REQUIRES_NIC_MUTEX = 0;

  // The loop of an existing queue pair, for its ConnectionEvents.
  virtual base::EventLoop& OwnerLoop(uint32_t number) const REQUIRES_NIC_MUTEX = 0;

  // Walks an existing queue pair, as QueuePair::Modify does. Going to Error flushes it.
  virtual absl::Status Modify(uint32_t number, QueuePairState state,
                              const QueuePairAttributes& attributes) REQUIRES_NIC_MUTEX = 0;

  // Sends news of this queue pair to the ManagementHandler until it is gone, or `watched` is false.
  virtual void Watch(uint32_t number, bool watched) REQUIRES_NIC_MUTEX = 0;

  // TIMEWAIT: keeps `number` from new queue pairs, even after its own is gone.
  virtual void HoldNumber(uint32_t number) REQUIRES_NIC_MUTEX = 0;
  virtual void ReleaseNumber(uint32_t number) REQUIRES_NIC_MUTEX = 0;
};

// The fate of a datagram.
enum class DatagramResult : uint8_t {
  kTaken,
  kNoMessage,  // not a message of connection managers: dropped
  kRefused,    // a request for a connection beyond the bounds: its sender is asked whether it is there, or not answered
};

// The NIC's news to its connection manager, with the mutex held, on the NIC's thread or inside an
// owner's call.
class ManagementHandler {
 public:
  virtual ~ManagementHandler() = default;

  // Takes a datagram to QP 1 with the right Q_Key; packet.peer is its sender, as fabrics write it.
  // The payload lives during the call only.
  virtual DatagramResult OnMad(const Packet& packet) REQUIRES_NIC_MUTEX = 0;

  // Reports a valid request at a watched queue pair in ReadyToReceive: the peer knows that it is
  // up. The call may walk it to ReadyToSend.
  virtual void OnFirstData(uint32_t number) REQUIRES_NIC_MUTEX = 0;

  // Reports that a watched queue pair went to Error (by its owner's Modify or by a fatal
  // completion; not by Management::Modify). A peer with work in flight finds out why by itself:
  // from the NAK on its way, or from silence after its retries. A DREQ at once would overtake that
  // and turn its verdict into a flush; so it goes out with the owner's drop of the connection, or
  // when the peer has had that time.
  virtual void OnError(uint32_t number) REQUIRES_NIC_MUTEX = 0;

  // Reports the owner's drop of a watched queue pair; its number is invalid when this returns.
  virtual void OnDropped(uint32_t number) REQUIRES_NIC_MUTEX = 0;
};

}  // namespace tokamak::verbs::soft
