// Seam 1: an RDMA device, as ibverbs and rdma_cm know it, so that everything above runs on any of
// them.
//
// Implementations: lib/verbs/ibv, RDMA devices through rdma-core; lib/verbs/soft, a software NIC
// that speaks RoCEv2. tests/verbs/conformance tests the promises here.
//
// Law: no call waits for another machine; no callback runs inside the call that asked for it.
// Law: handles may be dropped in any order, except that a QueuePair must outlive its Connection; a
// parent lives on inside its children. Once a handle is dropped, no callback of it runs, no
// completion of it is polled, and no byte of its memory is touched (for regions and windows see
// Limits::drop_stops_transfers). Law: Limits are facts. A missing ability is refused with
// kUnimplemented, never imitated.
// Thread rule: Device, ProtectionDomain and MemoryRegion may be used from any thread. A
// CompletionQueue, the queue pairs that complete into it and their connections belong to the thread
// of its EventLoop; a MemoryWindow or a SharedReceiveQueue to the thread of its queue pairs.
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

// Memory that the device may touch, with its keys. Dropping it revokes these keys and those of its
// windows: once the destructor returns, neither the device nor a peer touches the memory (but see
// Limits::drop_stops_transfers). Registration may block for long (page faults).
//
// A device may read memory after a peer's READ of it has completed: a repeated READ is answered
// twice, the second time to nobody. Writes meanwhile do no harm.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual uint8_t* address() const = 0;
  virtual uint64_t length() const = 0;  // bytes
  virtual uint32_t lkey() const = 0;
  virtual uint32_t rkey() const = 0;
};

// A remote key for a part of a region, without the cost of a registration (10.6.7, type 2B).
//
// Opcode::kBindWindow opens the part to the peer of the queue pair that carries it out, and to
// nobody else, until the window is invalidated: by kLocalInvalidate there, or by the peer's
// kSendWithInvalidate. Only then may it be bound again. The region needs kWindowBind, and
// kLocalWrite if the window gives kRemoteWrite or kRemoteAtomic; the remote rights of the region
// itself do not matter. A bind or invalidate that fails completes with
// CompletionStatus::kWindowBind, which ends the queue pair.
//
// A bind is ordered: earlier requests do not see it, later ones find it done. An invalidate may
// overtake earlier requests that have not completed, unless it has kFence; once it has completed,
// nothing is touched by right of the window. Dropping the window or its region does the same, but
// see Limits::drop_stops_transfers. When a queue pair goes to Error, is reset or dropped, its
// windows close and may be bound through another.
class MemoryWindow {
 public:
  virtual ~MemoryWindow() = default;
  virtual uint32_t rkey() const = 0;  // changes when a bind is posted
};

// Where completions arrive, in the order in which each queue pair finished its requests.
//
// Dropping it drops the completions that wait and all later ones. Its queue pairs keep what is
// below alive and go on, but none of their slots comes free any more: each takes requests for the
// slots that it has left, then returns kResourceExhausted. If these are more than `depth` together,
// the device may still report an overrun. Peers' READs and WRITEs take no slot and go on.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;

  // Moves at most completions.size() of them out and returns how many. Never waits.
  virtual size_t Poll(absl::Span<Completion> completions) = 0;

  // Arms one event: the next completion to arrive (with `solicited_only`, the next solicited
  // receive or error) runs the queue's `on_event` once. For completions that wait already it may
  // run or not: so arm, then drain. The event may then find nothing.
  virtual void RequestNotify(bool solicited_only = false) = 0;

  virtual uint32_t depth() const = 0;

  // Makes room for `depth`; waiting completions stay. Arm again after it, and drain.
  // kUnimplemented: the device cannot, and nothing has changed; kInvalidArgument: beyond
  // Limits::max_completions, or too few for those that wait.
  virtual absl::Status Resize(uint32_t depth) = 0;
};

// Receives that many queue pairs draw from, in the order posted (10.2.9).
//
// All of them are of this queue's protection domain and complete their receives on one loop. A
// message takes its receive when it begins; from then on the receive belongs to the message's queue
// pair, where it completes or is flushed. Receives that nobody took stay when a queue pair goes to
// Error. While the queue is empty, messages wait as for a receiver that is not ready.
//
// Dropping it forgets the receives that nobody took, and moves the queue pairs that draw from it to
// Error: drop them first.
class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;

  // As QueuePair::PostReceive: a slot is free once its completion, or a later one of this queue,
  // was polled.
  virtual PostResult PostReceive(absl::Span<const ReceiveRequest> requests) = 0;

  // Asks for one DeviceEvent::kReceiveLimit when fewer than `limit` receives are left to take,
  // which may be at once; 0 disarms.
  virtual absl::Status Arm(uint32_t limit) = 0;
};

struct QueuePairOptions {
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;       // may be the same
  SharedReceiveQueue* shared_receives = nullptr;  // if set, the queue pair has no receives of its own
  uint32_t max_send_requests = 64;                // posted and not polled, signaled or not
  uint32_t max_receive_requests = 64;
  uint32_t max_sges = 1;
  uint32_t max_inline = 0;            // bytes
  Access remote_access = kLocalRead;  // what any peer may do through this queue pair
  bool may_be_made_later = false;     // see QueuePair::made
};

// One end of a reliable connection. It is made in Init, in which receives may be posted. Once its
// destructor returns, no byte moves through it, for its own requests or the peer's: on every device
// that is proof that memory can be used again.
class QueuePair {
 public:
  virtual ~QueuePair() = default;

  virtual uint32_t number() const = 0;  // 24 bits
  virtual QueuePairState state() const = 0;

  // False, only with may_be_made_later, while the device is still making it. It takes receives and
  // is connected like any other; its number is known here before anything completes; number() and
  // Modify block until it is made. If it cannot be made, its connection says why (kUnreachable),
  // and nothing posted completes.
  virtual bool made() const { return true; }

  // Takes requests in order and stops at the first that it refuses. kResourceExhausted: the queue
  // is full (a slot is free once its completion, or that of a later request, was polled);
  // kInvalidArgument: beyond the limits; kFailedPrecondition: before ReadyToSend. In Error requests
  // are taken and flushed. Later failures are completions; any but kSuccess means that the queue
  // pair is in Error and the rest is flushed, in order.
  virtual PostResult PostSend(absl::Span<const SendRequest> requests) = 0;

  // Does the same for receives, from Init on.
  virtual PostResult PostReceive(absl::Span<const ReceiveRequest> requests) = 0;

  // Walks the states. Error is always allowed; the other steps, with attributes that the caller has
  // exchanged itself, need Limits::manual_modify and the specification's order.
  virtual absl::Status Modify(QueuePairState state, const QueuePairAttributes& attributes = {}) = 0;
};

class ProtectionDomain {
 public:
  virtual ~ProtectionDomain() = default;

  // Registers `memory`, which must stay mapped while the region lives. kInvalidArgument: it is
  // empty, or a right lacks another that it needs; kResourceExhausted: too much locked memory (the
  // text names the limit and the remedy).
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory, Access access) = 0;
  virtual absl::StatusOr<std::unique_ptr<MemoryWindow>> CreateMemoryWindow() = 0;
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(const QueuePairOptions& options) = 0;
  virtual absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t depth,
                                                                                       uint32_t max_sges) = 0;
};

struct ConnectionEvent {
  enum class Kind : uint8_t {
    kEstablished,   // the queue pair is ReadyToSend; private_data: the acceptor's, for who connects
    kRejected,      // status says why; private_data: the peer's
    kUnreachable,   // no answer by the deadline
    kDisconnected,  // by the peer or the network; the queue pair is in Error
  };
  Kind kind;
  absl::Status status;
  absl::Span<const uint8_t> private_data;  // valid during the callback only
  uint32_t path_mtu = 0;                   // kEstablished: bytes
  uint32_t peer_queue_pair = 0;            // kEstablished: its number, as the network says; 0: not known (iWARP)
};
const char* ToString(ConnectionEvent::Kind kind);

// Runs on the loop of the queue pair's completion queue, and may drop the Connection that it is
// about.
using ConnectionHandler = std::function<void(const ConnectionEvent&)>;

struct ConnectOptions {
  absl::Span<const uint8_t> private_data;  // at most Limits::max_private_data
  ReliabilityOptions reliability;
  uint32_t max_path_mtu = kMaxMtu;
  base::Duration deadline = base::Seconds(5);  // from the call to kEstablished
};

// A connection that is being made or is up. Dropping it disconnects: the peer learns of it and the
// queue pair goes to Error.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual const Address& peer() const = 0;
};

// A peer's wish to connect. Dropping it unanswered rejects it.
class ConnectionRequest {
 public:
  virtual ~ConnectionRequest() = default;
  virtual const Address& peer() const = 0;
  virtual absl::Span<const uint8_t> private_data() const = 0;

  // Answers with `queue_pair`, which must outlive the connection. It is walked to ReadyToReceive
  // before the peer hears of it, and is ReadyToSend by kEstablished. The active side must send
  // first (iWARP demands it). kCancelled: the peer has gone. A device that answers on a thread of
  // its own reports this and any other failure as kUnreachable with that status.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                             ConnectionHandler handler) = 0;
  virtual void Reject(absl::Span<const uint8_t> private_data) = 0;
};

using RequestHandler = std::function<void(std::unique_ptr<ConnectionRequest>)>;

// Dropping it stops listening; connections that were made go on.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual const Address& address() const = 0;  // with the port that was chosen if 0 was asked for
};

class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;

  // Requests arrive on `loop`. At least 64 may be unanswered; beyond a device's bound they are
  // rejected, or not answered. kAlreadyExists: the port is taken.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(base::EventLoop& loop, const Address& address,
                                                           RequestHandler handler) = 0;

  // Connects `queue_pair`, which is in Init and must outlive the connection, to the service at
  // `address`.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Connect(QueuePair& queue_pair, const Address& address,
                                                              const ConnectOptions& options,
                                                              ConnectionHandler handler) = 0;
};

// Happens to a device outside of any request (11.6.3).
enum class DeviceEvent : uint8_t {
  kPortUp,
  kPortDown,
  kAddressChanged,
  kRemoved,
  kCompletionQueueOverrun,  // the queue is dead and its queue pairs are in Error
  kQueuePairFatal,          // a fault of the device itself; never from a software NIC
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

  // Returns the name as it was opened: "soft:udp@127.0.0.1", "ibv:mlx5_0".
  virtual const std::string& name() const = 0;
  virtual const Limits& limits() const = 0;

  // True if bytes move in hardware or in the kernel's RDMA stack, as --require-rdma demands.
  virtual bool is_rdma() const = 0;

  // Returns the address at which peers reach this device; its port is 0.
  virtual const Address& address() const = 0;

  virtual absl::StatusOr<std::unique_ptr<ProtectionDomain>> CreateProtectionDomain() = 0;

  // Makes a queue whose `on_event` runs on `loop` (see CompletionQueue::RequestNotify). If more
  // than `depth` completions wait, it is overrun and dies (DeviceEvent::kCompletionQueueOverrun).
  virtual absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(base::EventLoop& loop, uint32_t depth,
                                                                                 std::function<void()> on_event) = 0;
  virtual ConnectionManager& connection_manager() = 0;

  // Null if the device has no datagrams (datagrams.h).
  virtual Datagrams* datagrams() { return nullptr; }

  virtual std::unique_ptr<DeviceWatch> Watch(base::EventLoop& loop, DeviceEventHandler handler) = 0;
};

}  // namespace tokamak::verbs
