// Seam 1: an RDMA device, as ibverbs and rdma_cm know it, so that everything above runs on any of
// them.
//
// A Device hands out ProtectionDomains (who may touch what memory), CompletionQueues (what is done)
// and, through its ConnectionManager, connections between QueuePairs (what to do). Implementations:
// lib/verbs/ibv, RDMA devices through rdma-core, and lib/verbs/soft, a software NIC that speaks
// RoCEv2. The promises of each are written as tests: tests/verbs/conformance.
//
// Law: no call waits for another machine; no callback runs inside the call that asked for it.
// Law: handles may be dropped in any order, with one exception: a QueuePair outlives its
//      Connection. A parent lives on inside until its last child is gone. Dropping a handle ends
//      what it named: no callback of it runs after, no completion of it is polled after, no byte of
//      its memory is touched after (of a region or window: see Limits::drop_stops_transfers).
// Law: Limits are facts. An ability that a device lacks is refused with kUnimplemented, never
//      imitated.
// Thread rule: Device, ProtectionDomain and MemoryRegion may be used from any thread. A
//      CompletionQueue, the queue pairs that complete into it and their connections belong to the
//      one thread of the EventLoop that the queue was made with; a MemoryWindow to the thread of
//      the queue pair that it is bound through, a SharedReceiveQueue to that of the queue pairs
//      that draw from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs {

// Memory that the device may touch, with its keys. Dropping it revokes the keys, and those of the
// windows bound in it: when the destructor returns, neither the device nor a peer touches the
// memory again. Without Limits::drop_stops_transfers what has begun may go on. Registration may
// block for long (page faults): see Limits of the caller's loop.
//
// A device may still read memory after a peer's READ of it has completed: a READ that was asked for
// twice is answered twice, and the second answer reaches nobody. Writes of the owner meanwhile harm
// neither side.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual uint8_t* address() const = 0;
  virtual uint64_t length() const = 0;  // bytes
  virtual uint32_t lkey() const = 0;
  virtual uint32_t rkey() const = 0;
};

// A remote key for a part of a region, without the cost of a registration. (10.6.7, type 2B)
//
// Opcode::kBindWindow opens the part to the peer of the queue pair that carries the bind out, and
// to nobody else, until the window is invalidated: by kLocalInvalidate there, or by the peer's
// kSendWithInvalidate. A window that is bound must be invalidated before it is bound again. The
// region needs kWindowBind, and kLocalWrite where the window gives kRemoteWrite or kRemoteAtomic;
// what it gives to others by its own key does not matter. A bind or invalidate that fails completes
// with CompletionStatus::kWindowBind and so ends the queue pair.
//
// A bind is ordered: requests before it do not see it, those after it find it done. An invalidate
// may overtake requests before it that have not completed; with kFence it waits for them. Once it
// has completed nothing is touched by the window's right. Dropping a window, or the region below
// it, has the same effect when the destructor returns, and the same exception without
// Limits::drop_stops_transfers. A window opens nothing any more when its queue pair is in Error,
// reset or gone; then it may be bound again, through another.
class MemoryWindow {
 public:
  virtual ~MemoryWindow() = default;
  virtual uint32_t rkey() const = 0;  // changes with each bind, when that is posted
};

// Where completions arrive, in the order in which each queue pair finished them.
//
// Dropping it is dropping what waits in it and all that would come: nobody polls that any more. The
// queue pairs that complete here keep what is below alive, and go on; but no slot of theirs comes
// free any more, so each takes as many requests as it has slots left and then says
// kResourceExhausted. A device may still find the queue overrun, where those are more than `depth`
// together. Peers' reads and writes through them take no slot, and go on.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;

  // Moves at most completions.size() of them out; returns how many. Never waits.
  virtual size_t Poll(absl::Span<Completion> completions) = 0;

  // Arms one event: the next completion that arrives (with `solicited_only`, the next solicited
  // receive or error) runs the queue's `on_event` once. For completions that wait already a device
  // may raise the event or not: so arm, then drain. The announced completions may have been polled
  // by then, so the event may find none.
  virtual void RequestNotify(bool solicited_only = false) = 0;

  virtual uint32_t depth() const = 0;

  // Makes room for `depth` completions; those that wait stay. Ask for an event again afterwards,
  // and drain. kUnimplemented: the device cannot (some never could), and nothing has changed;
  // kInvalidArgument: beyond Limits::max_completions, or too little for what waits.
  virtual absl::Status Resize(uint32_t depth) = 0;
};

// Receives that many queue pairs draw from, in the order posted. (10.2.9)
//
// All of them are of the queue's own protection domain and complete their receives on one loop. A
// message takes its receive when it begins; from then on that receive is its queue pair's, and
// completes, or is flushed, there. Receives that nobody took stay when a queue pair goes to Error.
// While the queue is empty messages wait as for a receiver that is not ready.
//
// Dropping it forgets the receives that nobody took, and the queue pairs that draw from it, which
// can receive nothing any more, go to Error: drop them first.
class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;

  // As QueuePair::PostReceive: a slot is free again when its completion, or a later one of this
  // queue, was polled.
  virtual PostResult PostReceive(absl::Span<const ReceiveRequest> requests) = 0;

  // One DeviceEvent::kReceiveLimit when fewer than `limit` receives are left to take, which may be
  // at once; 0 disarms.
  virtual absl::Status Arm(uint32_t limit) = 0;
};

struct QueuePairOptions {
  CompletionQueue* send_queue = nullptr;          // where send requests complete
  CompletionQueue* receive_queue = nullptr;       // may be the same
  SharedReceiveQueue* shared_receives = nullptr;  // then the queue pair has no receives of its own
  uint32_t max_send_requests = 64;                // posted and not yet polled, signaled or not
  uint32_t max_receive_requests = 64;
  uint32_t max_sges = 1;
  uint32_t max_inline = 0;            // bytes
  Access remote_access = kLocalRead;  // what any peer may do through this queue pair
  bool may_be_made_later = false;     // CreateQueuePair need not wait for the device: see QueuePair::made
};

// A reliable connection's end: a send and a receive queue. Made in Init, as rdma_create_qp leaves
// it: receives may be posted before it is connected. When its destructor returns, no byte moves
// through it any more, for its own requests or the peer's: on every device that is proof that
// memory can be used again.
class QueuePair {
 public:
  virtual ~QueuePair() = default;

  virtual uint32_t number() const = 0;  // 24 bits
  virtual QueuePairState state() const = 0;

  // False, with QueuePairOptions::may_be_made_later only: the device is still at making it. It
  // takes receives and is connected as any other, and its number is known here before anything
  // completes; number() and Modify make it now, and block as long as that takes. Where the device
  // cannot make it, its connection says why (kUnreachable), and of what was posted nothing comes
  // back.
  virtual bool made() const { return true; }

  // Takes a batch in order and stops at the first request it refuses: kResourceExhausted when the
  // queue is full (a slot is free again when its completion, or that of a later request, was
  // polled), kInvalidArgument for a request outside of the limits, kFailedPrecondition before
  // ReadyToSend. In Error requests are taken and flushed. Later failures come as completions;
  // any but kSuccess means that the queue pair is in Error and all the rest is flushed, in order.
  virtual PostResult PostSend(absl::Span<const SendRequest> requests) = 0;

  // The same for receives, from Init on.
  virtual PostResult PostReceive(absl::Span<const ReceiveRequest> requests) = 0;

  // Walks the states. Error is always allowed. The other steps (Reset, Init, ReadyToReceive,
  // ReadyToSend, by hand, with attributes exchanged by other means) need Limits::manual_modify and
  // the order of the specification.
  virtual absl::Status Modify(QueuePairState state, const QueuePairAttributes& attributes = {}) = 0;
};

class ProtectionDomain {
 public:
  virtual ~ProtectionDomain() = default;

  // `memory` must stay mapped while the region lives. Errors: kInvalidArgument (empty, or access
  // rights that need another), kResourceExhausted (locked memory: the text names the limit and the
  // remedy).
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory, Access access) = 0;
  virtual absl::StatusOr<std::unique_ptr<MemoryWindow>> CreateMemoryWindow() = 0;
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(const QueuePairOptions& options) = 0;
  virtual absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t depth,
                                                                                       uint32_t max_sges) = 0;
};

struct ConnectionEvent {
  enum class Kind : uint8_t {
    kEstablished,   // the queue pair is ReadyToSend; private_data is the peer's (Connect side)
    kRejected,      // status says why; private_data is the peer's
    kUnreachable,   // nobody answered by the deadline
    kDisconnected,  // the peer, or the network, ended it; the queue pair is in Error
  };
  Kind kind;
  absl::Status status;
  absl::Span<const uint8_t> private_data;  // looked at during the callback only
  uint32_t path_mtu = 0;                   // kEstablished: bytes
};
const char* ToString(ConnectionEvent::Kind kind);

// Runs on the loop of the queue pair's completion queue. May drop the Connection that it is about.
using ConnectionHandler = std::function<void(const ConnectionEvent&)>;

struct ConnectOptions {
  absl::Span<const uint8_t> private_data;  // at most Limits::max_private_data
  ReliabilityOptions reliability;
  uint32_t max_path_mtu = kMaxMtu;             // the path may have less
  base::Duration deadline = base::Seconds(5);  // from the call to kEstablished
};

// A connection that is being made, or is up. Dropping it disconnects: the peer learns of it, the
// queue pair goes to Error.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual const Address& peer() const = 0;
};

// A peer that asks for a connection. Dropping it without an answer rejects.
class ConnectionRequest {
 public:
  virtual ~ConnectionRequest() = default;
  virtual const Address& peer() const = 0;
  virtual absl::Span<const uint8_t> private_data() const = 0;

  // Answers with `queue_pair`, which must outlive the connection and is walked to ReadyToReceive
  // before the peer hears of it and to ReadyToSend by kEstablished. The active side sends first:
  // some networks (iWARP) demand it. kCancelled: the peer has gone meanwhile, so there is nobody to
  // answer. A device that answers on a thread of its own tells that, and what else it fails at, as
  // kUnreachable with that status.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                             ConnectionHandler handler) = 0;
  virtual void Reject(absl::Span<const uint8_t> private_data) = 0;
};

using RequestHandler = std::function<void(std::unique_ptr<ConnectionRequest>)>;

// Dropping it stops listening; connections that were made go on.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual const Address& address() const = 0;  // with the port that was chosen where 0 was asked for
};

class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;

  // Requests arrive on `loop`. At least 64 may be unanswered; what is beyond a device's bound is
  // rejected, or not answered.
  // kAlreadyExists: the port is taken.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(base::EventLoop& loop, const Address& address,
                                                           RequestHandler handler) = 0;

  // Connects `queue_pair`, in Init, to the service at `address`. The queue pair must outlive the
  // connection.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Connect(QueuePair& queue_pair, const Address& address,
                                                              const ConnectOptions& options,
                                                              ConnectionHandler handler) = 0;
};

// 11.6.3: what happens to a device outside of any request.
enum class DeviceEvent : uint8_t {
  kPortUp,
  kPortDown,
  kAddressChanged,
  kRemoved,
  kCompletionQueueOverrun,  // the queue is dead and its queue pairs are in Error
  kQueuePairFatal,          // the device gave it up for a fault of its own; the software NIC never does
  kReceiveLimit,            // SharedReceiveQueue::Arm
};
struct DeviceEventInfo {
  DeviceEvent event = DeviceEvent::kPortUp;
  uint32_t queue_pair_number = 0;                       // kQueuePairFatal
  const SharedReceiveQueue* shared_receives = nullptr;  // kReceiveLimit: which; only to be compared
};
using DeviceEventHandler = std::function<void(const DeviceEventInfo&)>;

// Dropping it ends the watch.
class DeviceWatch {
 public:
  virtual ~DeviceWatch() = default;
};

class Datagrams;

class Device {
 public:
  virtual ~Device() = default;

  // As it was opened: "soft:udp@127.0.0.1", "ibv:mlx5_0".
  virtual const std::string& name() const = 0;
  virtual const Limits& limits() const = 0;

  // True when the bytes move in hardware or in the kernel's RDMA stack, which is what
  // --require-rdma asks for.
  virtual bool is_rdma() const = 0;

  // Where peers reach this device; its port is 0.
  virtual const Address& address() const = 0;

  virtual absl::StatusOr<std::unique_ptr<ProtectionDomain>> CreateProtectionDomain() = 0;

  // `on_event` runs on `loop`, see CompletionQueue::RequestNotify. When more than `depth`
  // completions wait, the queue is overrun: it dies, loudly (DeviceEvent::kCompletionQueueOverrun).
  virtual absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(base::EventLoop& loop, uint32_t depth,
                                                                                 std::function<void()> on_event) = 0;
  virtual ConnectionManager& connection_manager() = 0;

  // Beside connections, unreliable datagrams: datagrams.h. Null: the device has none.
  virtual Datagrams* datagrams() { return nullptr; }

  virtual std::unique_ptr<DeviceWatch> Watch(base::EventLoop& loop, DeviceEventHandler handler) = 0;
};

}  // namespace tokamak::verbs
