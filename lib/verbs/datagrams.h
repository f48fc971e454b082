// Datagrams: the part of RDMA that connections do without. (9.8.3; ibverbs' IBV_QPT_UD, rdma_cm's
// RDMA_PS_UDP)
//
// A datagram queue pair sends messages of one packet each to any other one, or to a multicast
// group, and nothing is reported about their fate. Our transport does not need them, though other
// programs do (UCX, Open MPI), so a device may lack them: see Device::datagrams().
//
// A queue pair is named by its device's address and its number, and lets in only messages with its
// Q_Key. Laws and thread rules are those of verbs.h, where a QueuePair stands for a
// DatagramQueuePair and a MemoryRegion for an AddressHandle.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/types.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs {

// A received datagram lies behind this many bytes of its receive, which count in byte_count: a
// global route header, in which RoCE puts the packet's IP header (8.3, A17.4.5.1). An IPv6 header
// fills it; an IPv4 header follows 20 zeros.
constexpr uint32_t kGlobalRouteHeader = 40;

// Stands for all queue pairs of a multicast group.
constexpr uint32_t kMulticastQueuePair = 0xffffff;

// The Q_Key that rdma_cm gives to everything in RDMA_PS_UDP (RDMA_UDP_QKEY).
constexpr uint32_t kServiceQkey = 0x01234567;

// Q_Keys with this bit are "controlled" (3.5.3): a request that names one is sent with its queue
// pair's own.
constexpr uint32_t kControlledQkey = 0x80000000;

// The destination of datagrams (11.2.2.1).
struct DatagramAddress {
  Address peer;               // a device, or a multicast group; `port` is not used
  uint8_t traffic_class = 0;  // DSCP and ECN
};

// A DatagramAddress prepared for sending.
class AddressHandle {
 public:
  virtual ~AddressHandle() = default;
  virtual const DatagramAddress& address() const = 0;
};

// One message. Spans and `to` are looked at during PostSend only; for the memory behind the sges
// see SendRequest.
struct DatagramRequest {
  uint64_t id = 0;                // comes back in the completion
  SendFlags flags = SendFlags{};  // kFence does nothing
  absl::Span<const Sge> sges;
  std::optional<uint32_t> immediate;  // host order
  const AddressHandle* to = nullptr;  // of the queue pair's domain
  uint32_t queue_pair_number = 0;     // the receiver's; kMulticastQueuePair for a group
  uint32_t qkey = 0;                  // the receiver's, or one with kControlledQkey
};

struct DatagramQueuePairOptions {
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;       // may be the same
  SharedReceiveQueue* shared_receives = nullptr;  // if set, the queue pair has no receives of its own
  uint32_t max_send_requests = 64;
  uint32_t max_receive_requests = 64;
  uint32_t max_sges = 1;
  uint32_t max_inline = 0;  // bytes
  uint32_t qkey = kServiceQkey;
};

struct DatagramAttributes {
  std::optional<uint32_t> qkey;  // Init to ReadyToSend: a new one
  uint32_t send_psn = 0;         // ReadyToReceive to ReadyToSend: the first packet's, 24 bits
};

// Made in Init, as a QueuePair is.
//
// A request is complete when its packet has left; one longer than Limits::active_mtu sends nothing,
// yet completes (C10-93.1.1). A receiver drops a message silently if it is not ReadyToReceive or
// ReadyToSend, has another Q_Key, or has no receive that is large enough; a receive that is too
// small stays posted.
class DatagramQueuePair {
 public:
  virtual ~DatagramQueuePair() = default;

  virtual uint32_t number() const = 0;  // 24 bits
  virtual QueuePairState state() const = 0;

  // As in QueuePair.
  virtual PostResult PostSend(absl::Span<const DatagramRequest> requests) = 0;
  virtual PostResult PostReceive(absl::Span<const ReceiveRequest> requests) = 0;

  // Walks the states as QueuePair::Modify does; a step from ReadyToSend to itself changes the
  // Q_Key.
  virtual absl::Status Modify(QueuePairState state, const DatagramAttributes& attributes = {}) = 0;

  // Joins `group`: its messages come here too, even those that this queue pair sends. Joining again
  // changes nothing. Attach and Detach may wait for the device's own thread. kInvalidArgument: not
  // a multicast address; kUnimplemented: the device's network carries no multicast;
  // kResourceExhausted: too many groups, or members of one.
  virtual absl::Status Attach(const Address& group) = 0;
  virtual absl::Status Detach(const Address& group) = 0;  // kNotFound: it is not in the group
};

class Datagrams {
 public:
  virtual ~Datagrams() = default;

  virtual absl::StatusOr<std::unique_ptr<AddressHandle>> CreateAddressHandle(ProtectionDomain& domain,
                                                                             const DatagramAddress& address) = 0;
  virtual absl::StatusOr<std::unique_ptr<DatagramQueuePair>> CreateQueuePair(
      ProtectionDomain& domain, const DatagramQueuePairOptions& options) = 0;
};

}  // namespace tokamak::verbs
