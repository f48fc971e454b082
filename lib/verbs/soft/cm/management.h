// Management is what the NIC offers to its connection manager: datagrams on QP 1, alarms, and queue
// pairs to walk.
//
// The connection manager is called by owners' threads (Connect, Listen, Accept, dropped handles)
// and by the NIC's thread (datagrams, alarms, news of queue pairs). All its state is under the
// NIC's mutex: owners' threads take it with NicLock(management.mutex()), the NIC calls the
// ManagementHandler with the mutex held.
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

// One management datagram. (13.4.2)
constexpr size_t kMadSize = 256;

// Datagrams that may wait to be sent; further ones are dropped and counted, as a network would.
constexpr size_t kMaxMadsWaiting = 1024;

class Management {
 public:
  virtual ~Management() = default;

  // Needs no lock. What outlives a call (a Connection, a Listener) holds this, so that the NIC
  // stays; the connection manager itself, which the NIC owns, must not.
  virtual std::shared_ptr<Management> Share() = 0;
  virtual NicMutex& mutex() = 0;
  virtual const Limits& limits() const = 0;
  virtual const Address& address() const = 0;  // the device's; udp_port is 0 where that is RoCE's

  // Alarms fire on the NIC's thread, under the mutex.
  virtual AlarmClock& alarms() REQUIRES_NIC_MUTEX = 0;

  // A stream for the connection manager alone.
  virtual SecretNumbers& numbers() REQUIRES_NIC_MUTEX = 0;

  // Of which share the IDs are that it gives out. The same for the NIC's life.
  virtual NumberShare share() const REQUIRES_NIC_MUTEX = 0;

  // As of Port.
  virtual absl::Status Serve(uint64_t service_id) REQUIRES_NIC_MUTEX = 0;
  virtual void Withdraw(uint64_t service_id) REQUIRES_NIC_MUTEX = 0;

  virtual void Trace(base::TraceKind kind, uint32_t number, uint64_t size) REQUIRES_NIC_MUTEX = 0;

  // Sends `mad` (kMadSize bytes, copied) from QP 1 to QP 1 of the device at `peer`, unreliably,
  // with the NIC's next batch.
  virtual void SendMad(const Address& peer, absl::Span<const uint8_t> mad) REQUIRES_NIC_MUTEX = 0;

  // Queue pairs go by their numbers, since an owner may drop one at any time.
  virtual bool Exists(uint32_t number) const REQUIRES_NIC_MUTEX = 0;
  virtual QueuePairState State(uint32_t number) const REQUIRES_NIC_MUTEX = 0;  // must exist

  // Whether an existing queue pair has taken anything that its peer sent, in this connection.
  virtual bool Heard(uint32_t number) const REQUIRES_NIC_MUTEX = 0;

  // The loop of the completion queue of an existing queue pair: where its ConnectionEvents go.
  virtual base::EventLoop& OwnerLoop(uint32_t number) const REQUIRES_NIC_MUTEX = 0;

  // Walks an existing queue pair, as QueuePair::Modify does. Going to Error flushes it.
  virtual absl::Status Modify(uint32_t number, QueuePairState state,
                              const QueuePairAttributes& attributes) REQUIRES_NIC_MUTEX = 0;

  // The news of this queue pair go to the ManagementHandler until it is gone, or `watched` is
  // false.
  virtual void Watch(uint32_t number, bool watched) REQUIRES_NIC_MUTEX = 0;

  // TIMEWAIT: while held, `number` is not given to a new queue pair, also after its queue pair is
  // gone.
  virtual void HoldNumber(uint32_t number) REQUIRES_NIC_MUTEX = 0;
  virtual void ReleaseNumber(uint32_t number) REQUIRES_NIC_MUTEX = 0;
};

// What became of a datagram.
enum class DatagramResult : uint8_t {
  kTaken,
  kNoMessage,  // nothing that a connection manager sends: dropped
  kRefused,    // a request for a connection beyond the bounds: its sender is asked whether it is there, or not answered
};

// What the NIC tells its connection manager: on the NIC's thread or inside an owner's call, always
// with the mutex held.
class ManagementHandler {
 public:
  virtual ~ManagementHandler() = default;

  // A datagram to QP 1 with the right Q_Key; packet.peer is its sender, as fabrics write it. The
  // payload lives during the call only.
  virtual DatagramResult OnMad(const Packet& packet) REQUIRES_NIC_MUTEX = 0;

  // A valid request of the peer arrived at a watched queue pair in ReadyToReceive: the peer has
  // been told that it is up. It may be walked to ReadyToSend inside the call.
  virtual void OnFirstData(uint32_t number) REQUIRES_NIC_MUTEX = 0;

  // A watched queue pair went to Error (by its owner's Modify or by a fatal completion; not by
  // Management::Modify). A peer that has work in flight finds out by itself, and why: from the NAK
  // that is on its way to it, or from silence after its retries. A DREQ at once would overtake that
  // and turn its verdict into a flush; so it goes out with the owner's drop of the connection, or
  // when the peer has had that time.
  virtual void OnError(uint32_t number) REQUIRES_NIC_MUTEX = 0;

  // A watched queue pair is being dropped by its owner; its number is not valid any more when this
  // returns.
  virtual void OnDropped(uint32_t number) REQUIRES_NIC_MUTEX = 0;
};

}  // namespace tokamak::verbs::soft
