// Datagrams: the part of RDMA that connections do without. (9.8.3; ibverbs' IBV_QPT_UD, rdma_cm's
// RDMA_PS_UDP)
//
// Messages of one packet to any datagram queue pair, or to a multicast group, with nothing reported
// of their fate. Our transport needs none; other programs do (UCX, Open MPI), so a device may lack
// it: Device::datagrams().
//
// A queue pair is named by its device's address and its number, and lets in only messages with its
// Q_Key. Laws and thread rules are those of verbs.h: a DatagramQueuePair's as a QueuePair's, an
// AddressHandle's as a MemoryRegion's.
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

// The bytes of a receive before a datagram, counted in byte_count: a global route header with the
// packet's IP header (8.3, A17.4.5.1): IPv6's, or 20 zeros and IPv4's.
constexpr uint32_t kGlobalRouteHeader = 40;

// Stands for all queue pairs of a multicast group.
constexpr uint32_t kMulticastQueuePair = 0xffffff;

// RDMA_UDP_QKEY: rdma_cm's for RDMA_PS_UDP.
constexpr uint32_t kServiceQkey = 0x01234567;

// "Controlled" Q_Keys (3.5.3): a request that names one is sent with its queue pair's own.
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

// One message. Spans and `to` are looked at during PostSend only; the sges' memory as in
// SendRequest.
struct DatagramRequest {
  uint64_t id = 0;                // of the completion
  SendFlags flags = SendFlags{};  // kFence does nothing
  absl::Span<const Sge> sges;
  std::optional<uint32_t> immediate;  // host order
  const AddressHandle* to = nullptr;  // of the queue pair's domain
  uint32_t queue_pair_number = 0;     // the receiver's; a group: kMulticastQueuePair
  uint32_t qkey = 0;                  // the receiver's, or one with kControlledQkey
};

struct DatagramQueuePairOptions {
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;       // may be the same
  SharedReceiveQueue* shared_receives = nullptr;  // replaces receives of its own
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
// yet completes (C10-93.1.1). A receiver silently drops a message if it is not ReadyToReceive or
// ReadyToSend, or lacks the Q_Key or a large enough receive, which stays.
class DatagramQueuePair {
 public:
  virtual ~DatagramQueuePair() = default;

  virtual uint32_t number() const = 0;  // 24 bits
  virtual QueuePairState state() const = 0;

  // As QueuePair's.
  virtual PostResult PostSend(absl::Span<const DatagramRequest> requests) = 0;
  virtual PostResult PostReceive(absl::Span<const ReceiveRequest> requests) = 0;

  // Walks as QueuePair::Modify; ReadyToSend to itself changes the Q_Key.
  virtual absl::Status Modify(QueuePairState state, const DatagramAttributes& attributes = {}) = 0;

  // Joins `group`: its messages come here too, this queue pair's own as well. Repeating changes
  // nothing. Both may wait for the device's thread. kInvalidArgument: not a multicast address;
  // kUnimplemented: no multicast here; kResourceExhausted: too many groups, or members of one.
  virtual absl::Status Attach(const Address& group) = 0;
  virtual absl::Status Detach(const Address& group) = 0;  // kNotFound: no member
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
