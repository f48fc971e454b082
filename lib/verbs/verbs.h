// Seam 1: an RDMA device, as ibverbs and rdma_cm know it, so that everything above runs on any of
// them.
//
// Implementations: lib/verbs/ibv, RDMA devices through rdma-core; lib/verbs/soft, a software NIC
// that speaks RoCEv2. tests/verbs/conformance tests the promises here.
//
// Law: no call waits for another machine; no callback runs inside the call that asked for it.
// Law: handles may be dropped in any order, but a QueuePair outlives its Connection; a parent lives
// on inside its children. Dropping a handle ends it: afterwards no callback runs, no completion is
// polled, no byte of its memory is touched (regions, windows: see Limits::drop_stops_transfers).
// Law: Limits are facts. A missing ability is refused with kUnimplemented, never imitated.
// Thread rule: Device, ProtectionDomain and MemoryRegion: any thread. A CompletionQueue, its queue
// pairs and their connections: the thread of its EventLoop; a MemoryWindow or SharedReceiveQueue:
// that of its queue pairs.
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

// Memory that the device may touch, with its keys. Dropping it revokes them and those of its
// windows: once the destructor returns, neither device nor peer touches the memory (but see
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
// Opcode::kBindWindow opens the part to the peer of the queue pair that carries it out, until the
// window is invalidated, by kLocalInvalidate there or the peer's kSendWithInvalidate; only then it
// may be bound again. The region needs kWindowBind, and kLocalWrite for kRemoteWrite or
// kRemoteAtomic, whatever its own key gives. A bind or invalidate that fails completes with
// CompletionStatus::kWindowBind, which ends the queue pair.
//
// A bind is ordered. An invalidate may overtake earlier requests that have not completed, unless
// kFence; once it has completed, nothing is touched by the window's right. Dropping the window or
// its region does the same, but see Limits::drop_stops_transfers. In Error, reset or gone, a queue
// pair leaves its windows closed; they may be bound through another.
class MemoryWindow {
 public:
  virtual ~MemoryWindow() = default;
  virtual uint32_t rkey() const = 0;  // changes when a bind is posted
};

// Completions, in the order in which each queue pair finished.
//
// Dropping it drops waiting and future completions. Its queue pairs keep it alive inside, and take
// requests for the slots that they have left, then return kResourceExhausted; the device may still
// find it overrun by more than `depth` of them. Peers' READs and WRITEs go on.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;

  // Returns how many it moved out, at most completions.size(). Never waits.
  virtual size_t Poll(absl::Span<Completion> completions) = 0;

  // Arms one event: the next completion (`solicited_only`: solicited receive or error) runs
  // `on_event` once. For completions that wait already it may run or not: so arm, then drain. It
  // may find none.
  virtual void RequestNotify(bool solicited_only = false) = 0;

  virtual uint32_t depth() const = 0;

  // Makes room for `depth`; waiting completions stay. Arm again after it, and drain.
  // kUnimplemented, changing nothing: the device cannot; kInvalidArgument: beyond
  // Limits::max_completions, or below what waits.
  virtual absl::Status Resize(uint32_t depth) = 0;
};

// Receives that many queue pairs draw from, in the order posted (10.2.9).
//
// They share its protection domain and one loop. A message takes its receive when it begins, which
// then completes, or is flushed, with its queue pair; receives not taken survive Error. On an empty
// queue messages wait as for a receiver that is not ready.
//
// Dropping it forgets receives not taken, and moves its queue pairs to Error: drop them first.
class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;

  // As QueuePair::PostReceive: a slot is free once its completion, or a later one of this queue,
  // was polled.
  virtual PostResult PostReceive(absl::Span<const ReceiveRequest> requests) = 0;

  // Asks for one DeviceEvent::kReceiveLimit once fewer than `limit` receives are left, perhaps now;
  // 0 disarms.
  virtual absl::Status Arm(uint32_t limit) = 0;
};

struct QueuePairOptions {
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;       // may be the same
  SharedReceiveQueue* shared_receives = nullptr;  // replaces receives of its own
  uint32_t max_send_requests = 64;                // posted and not polled, signaled or not
  uint32_t max_receive_requests = 64;
  uint32_t max_sges = 1;
  uint32_t max_inline = 0;            // bytes
  Access remote_access = kLocalRead;  // any peer's rights
  bool may_be_made_later = false;     // see QueuePair::made
};

// A reliable connection's end, made in Init, where receives may be posted. Once its destructor
// returns no byte moves through it, for its own requests or the peer's: proof on every device that
// memory can be used again.
class QueuePair {
 public:
  virtual ~QueuePair() = default;

  virtual uint32_t number() const = 0;  // 24 bits
  virtual QueuePairState state() const = 0;

  // False, with may_be_made_later only, while the device makes it. It takes receives and is
  // connected as any other; its number is known before anything completes; number() and Modify
  // block until it is made. If it cannot be made, its connection says why (kUnreachable), and
  // nothing posted completes.
  virtual bool made() const { return true; }

  // Takes requests in order up to the first bad one. kResourceExhausted: full (a slot is free once
  // its completion, or a later one, was polled); kInvalidArgument: beyond the limits;
  // kFailedPrecondition: before ReadyToSend. In Error requests are taken and flushed. Later
  // failures are completions; any but kSuccess means that the queue pair is in Error and the rest
  // is flushed, in order.
  virtual PostResult PostSend(absl::Span<const SendRequest> requests) = 0;

  // Takes receives alike, from Init on.
  virtual PostResult PostReceive(absl::Span<const ReceiveRequest> requests) = 0;

  // Walks the states. Error is always allowed; other steps, with attributes exchanged by other
  // means, need Limits::manual_modify and the specification's order.
  virtual absl::Status Modify(QueuePairState state, const QueuePairAttributes& attributes = {}) = 0;
};

class ProtectionDomain {
 public:
  virtual ~ProtectionDomain() = default;

  // Registers `memory`, which stays mapped while the region lives. kInvalidArgument: empty, or
  // rights that need another; kResourceExhausted: locked memory, with the limit and remedy.
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory, Access access) = 0;
  virtual absl::StatusOr<std::unique_ptr<MemoryWindow>> CreateMemoryWindow() = 0;
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(const QueuePairOptions& options) = 0;
  virtual absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t depth,
                                                                                       uint32_t max_sges) = 0;
};

struct ConnectionEvent {
  enum class Kind : uint8_t {
    kEstablished,   // in ReadyToSend; private_data: the acceptor's
    kRejected,      // status says why; private_data: the peer's
    kUnreachable,   // no answer by the deadline
    kDisconnected,  // by the peer or network; in Error
  };
  Kind kind;
  absl::Status status;
  absl::Span<const uint8_t> private_data;  // during the callback only
  uint32_t path_mtu = 0;                   // kEstablished: bytes
};
const char* ToString(ConnectionEvent::Kind kind);

// Runs on the loop of the queue pair's completion queue, and may drop the Connection.
using ConnectionHandler = std::function<void(const ConnectionEvent&)>;

struct ConnectOptions {
  absl::Span<const uint8_t> private_data;  // at most Limits::max_private_data
  ReliabilityOptions reliability;
  uint32_t max_path_mtu = kMaxMtu;
  base::Duration deadline = base::Seconds(5);  // from the call to kEstablished
};

// Being made, or up. Dropping it disconnects: the peer learns of it, the queue pair goes to Error.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual const Address& peer() const = 0;
};

// Dropping it unanswered rejects.
class ConnectionRequest {
 public:
  virtual ~ConnectionRequest() = default;
  virtual const Address& peer() const = 0;
  virtual absl::Span<const uint8_t> private_data() const = 0;

  // Answers with `queue_pair`, which outlives the connection and is walked to ReadyToReceive before
  // the peer hears, to ReadyToSend by kEstablished. The active side sends first (iWARP demands it).
  // kCancelled: the peer has gone. A device that answers on its own thread reports that and other
  // failures as kUnreachable with that status.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                             ConnectionHandler handler) = 0;
  virtual void Reject(absl::Span<const uint8_t> private_data) = 0;
};

using RequestHandler = std::function<void(std::unique_ptr<ConnectionRequest>)>;

// Dropping it stops listening; connections go on.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual const Address& address() const = 0;  // with the chosen port for 0
};

class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;

  // Requests arrive on `loop`. At least 64 may be unanswered; beyond a device's bound they are
  // rejected, or not answered. kAlreadyExists: the port is taken.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(base::EventLoop& loop, const Address& address,
                                                           RequestHandler handler) = 0;

  // Connects `queue_pair`, in Init, which outlives the connection, to the service at `address`.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Connect(QueuePair& queue_pair, const Address& address,
                                                              const ConnectOptions& options,
                                                              ConnectionHandler handler) = 0;
};

// 11.6.3.
enum class DeviceEvent : uint8_t {
  kPortUp,
  kPortDown,
  kAddressChanged,
  kRemoved,
  kCompletionQueueOverrun,  // its queue pairs are in Error
  kQueuePairFatal,          // the device's fault; never a software NIC's
  kReceiveLimit,            // SharedReceiveQueue::Arm
};
struct DeviceEventInfo {
  DeviceEvent event = DeviceEvent::kPortUp;
  uint32_t queue_pair_number = 0;                       // kQueuePairFatal
  const SharedReceiveQueue* shared_receives = nullptr;  // kReceiveLimit; only to be compared
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

  // Returns it as opened: "soft:udp@127.0.0.1", "ibv:mlx5_0".
  virtual const std::string& name() const = 0;
  virtual const Limits& limits() const = 0;

  // True if bytes move in hardware or the kernel's RDMA stack (--require-rdma).
  virtual bool is_rdma() const = 0;

  // Returns the address for peers; its port is 0.
  virtual const Address& address() const = 0;

  virtual absl::StatusOr<std::unique_ptr<ProtectionDomain>> CreateProtectionDomain() = 0;

  // Makes a queue whose `on_event` runs on `loop` (CompletionQueue::RequestNotify). With more than
  // `depth` waiting it is overrun and dies (DeviceEvent::kCompletionQueueOverrun).
  virtual absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(base::EventLoop& loop, uint32_t depth,
                                                                                 std::function<void()> on_event) = 0;
  virtual ConnectionManager& connection_manager() = 0;

  // Returns null without datagrams (datagrams.h).
  virtual Datagrams* datagrams() { return nullptr; }

  virtual std::unique_ptr<DeviceWatch> Watch(base::EventLoop& loop, DeviceEventHandler handler) = 0;
};

}  // namespace tokamak::verbs
