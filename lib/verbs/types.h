// The vocabulary of RDMA that both sides of the verbs seam share: keys, requests, completions,
// states, limits.
//
// Every name maps to one of ibverbs (docs/verbs.md); chapter numbers are the InfiniBand
// Architecture Specification's, volume 1.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/base/time.h"

namespace tokamak::verbs {

// Where a device or a service is reached: an IP address (IPv4 is IPv4-mapped, as in a RoCE GID) and
// a port, which names the service of a connection (RDMA IP CM service ID) and is not a UDP port.
struct Address {
  std::array<uint8_t, 16> ip{};
  uint16_t port = 0;

  // A software NIC's UDP port where it is not RoCE's, so that several can share one IP address. 0:
  // the port of the device that connects.
  uint16_t udp_port = 0;

  // Parses "10.0.0.1:7000", "[fd00::1]:7000" or, with a UDP port, "10.0.0.1:7000@4792". A missing
  // port is 0.
  static absl::StatusOr<Address> Parse(absl::string_view text);
  std::string ToString() const;
  bool is_ipv4() const;
  bool is_unspecified() const;  // "0.0.0.0", "::": every address of a machine, and none that a peer could reach
  bool is_loopback() const;     // 127.0.0.0/8, ::1
  bool is_link_local() const;   // IPv6 fe80::/10, useless without an interface
  bool is_multicast() const;    // 224.0.0.0/4, ff00::/8

  bool operator==(const Address& other) const {
    return ip == other.ip && port == other.port && udp_port == other.udp_port;
  }
  bool operator!=(const Address& other) const { return !(*this == other); }
  bool operator<(const Address& other) const {
    return std::tie(ip, port, udp_port) < std::tie(other.ip, other.port, other.udp_port);
  }
};

// Rights to a memory region or window, combined with | (10.6.3).
enum Access : uint32_t {
  kLocalRead = 0,  // always allowed
  kLocalWrite = 1,
  kRemoteWrite = 2,  // needs kLocalWrite
  kRemoteRead = 4,
  kRemoteAtomic = 8,  // needs kLocalWrite
  kWindowBind = 16,
  // Its bytes are never read nor written, so the memory need not exist: for simulations in which
  // only lengths and times count. Software NICs only; not with kRemoteAtomic.
  kPhantom = 32,
  // Arriving bytes may be placed in any order until a completion, which covers all that came before
  // it: for memory that is looked at only then, and not written twice meanwhile. Faster on some
  // devices (PCI Express relaxed ordering), ignored by others. Not with kRemoteAtomic.
  kRelaxedOrdering = 64,
};
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}

enum class Opcode : uint8_t {
  kSend,
  kSendWithImm,
  kSendWithInvalidate,  // the peer's device revokes a window's key; needs kFence behind READs through it
  kWrite,
  kWriteWithImm,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kBindWindow,
  kLocalInvalidate,
};

enum SendFlags : uint32_t {
  kSignaled = 1,   // a completion also on success
  kSolicited = 2,  // the receiver's solicited-only notification fires
  kFence = 4,      // waits for this queue pair's earlier READs and atomics; kLocalInvalidate: for all requests
  kInline = 8,     // bytes are taken during the call; lkeys are not looked at
};
constexpr SendFlags operator|(SendFlags a, SendFlags b) {
  return static_cast<SendFlags>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}

// A piece of local memory to gather from or scatter to.
struct Sge {
  uint8_t* address = nullptr;
  uint32_t length = 0;  // bytes
  uint32_t lkey = 0;
};

class MemoryRegion;
class MemoryWindow;

// A work request of the send queue. Spans are looked at during PostSend only; the memory behind the
// sges belongs to the device until the request has completed (kInline: until PostSend returns).
struct SendRequest {
  uint64_t id = 0;  // of the completion
  Opcode opcode = Opcode::kSend;
  SendFlags flags = SendFlags{};
  absl::Span<const Sge> sges;
  uint32_t immediate = 0;       // host order; kSendWithImm, kWriteWithImm
  uint64_t remote_address = 0;  // writes, reads, atomics (8-byte aligned)
  uint32_t rkey = 0;            // the same; kSendWithInvalidate, kLocalInvalidate: the key to revoke
  uint64_t compare = 0;         // kCompareSwap
  uint64_t swap_or_add = 0;     // kCompareSwap: the new value; kFetchAdd: the addend
  struct {
    MemoryWindow* window = nullptr;
    MemoryRegion* region = nullptr;
    uint8_t* address = nullptr;
    uint64_t length = 0;
    Access access = kLocalRead;
  } bind;  // kBindWindow
};

struct ReceiveRequest {
  uint64_t id = 0;
  absl::Span<const Sge> sges;
};

// How many requests of a batch were taken: all, or those before the first bad one (ibverbs'
// bad_wr), with the reason.
struct PostResult {
  size_t accepted = 0;
  absl::Status status;
  bool ok() const { return status.ok(); }
};

// 11.6.2; each is one of IBV_WC_*.
enum class CompletionStatus : uint8_t {
  kSuccess,
  kLocalLength,           // a message longer than its receive, or than the device's limit
  kLocalQpOperation,      // the queue pair could not do it
  kLocalProtection,       // a local key does not cover the memory
  kFlushed,               // the queue pair was in Error when the request's turn came
  kWindowBind,            // a window could not be bound or invalidated
  kBadResponse,           // the peer's answer was malformed
  kLocalAccess,           // a receive's memory may not be written
  kRemoteInvalidRequest,  // the peer does not understand it
  kRemoteAccess,          // the remote key does not allow it
  kRemoteOperation,       // the peer failed to carry it out
  kRetryExceeded,         // no answer within (retry_count + 1) time-outs
  kRnrRetryExceeded,      // the peer had no receive posted, rnr_retry_count + 1 times
  kRemoteAborted,
  kFatal,
  kGeneral,
};
const char* ToString(CompletionStatus status);

enum class CompletionOpcode : uint8_t {
  kSend,
  kWrite,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kBindWindow,
  kLocalInvalidate,
  kReceive,
  kReceiveWriteWithImm,  // the peer's kWriteWithImm took this receive
};

// On failure only id, status, queue_pair_number and provider_code mean anything.
struct Completion {
  uint64_t id = 0;
  CompletionStatus status = CompletionStatus::kSuccess;
  CompletionOpcode opcode = CompletionOpcode::kSend;
  bool has_immediate = false;
  bool has_invalidated = false;  // the peer's kSendWithInvalidate revoked `invalidated_rkey`
  bool solicited = false;        // receives: the peer asked for an event; software NICs only
  uint32_t byte_count = 0;       // receives, reads, atomics
  uint32_t immediate = 0;
  uint32_t invalidated_rkey = 0;
  uint32_t queue_pair_number = 0;
  uint32_t source_queue_pair = 0;  // the sender of a received datagram (datagrams.h)
  uint32_t provider_code = 0;      // the device's own error code, for logs
};

// 10.3.1. Legal steps are those of ibv_modify_qp.
enum class QueuePairState : uint8_t { kReset, kInit, kReadyToReceive, kReadyToSend, kError };
const char* ToString(QueuePairState state);

// Path MTUs (9.6.1.2.1).
constexpr uint32_t kMinMtu = 256;
constexpr uint32_t kMaxMtu = 4096;

// Retry counts stop at 6: 7 means "for ever" after an RNR NAK, and on some devices after any
// time-out.
constexpr uint8_t kMaxRetryCount = 6;

// How a reliable connection behaves once it is up. Its two sides may differ.
struct ReliabilityOptions {
  base::Duration ack_timeout = base::Milliseconds(67);  // rounded up to 4.096 us x 2^n, n in 1..31 (9.7.6.1.3)
  uint8_t retry_count = kMaxRetryCount;                 // 0..6
  uint8_t rnr_retry_count = kMaxRetryCount;             // 0..6
  base::Duration rnr_delay = base::Microseconds(640);  // asked of a peer; rounded up in the RNR timer table (9.7.5.2.8)
  uint8_t reads_outstanding = 16;                      // READs and atomics that we may have in flight (initiator depth)
  uint8_t reads_served = 16;  // READs and atomics that the peer may have in flight (responder resources)
};

// See QueuePair::Modify.
struct QueuePairAttributes {
  Access remote_access = kLocalRead;  // Init: what any peer may do through this queue pair
  Address peer;                       // ReadyToReceive: the peer device's; `port` is not used
  uint32_t peer_number = 0;           // ReadyToReceive
  uint32_t receive_psn = 0;           // ReadyToReceive: the first PSN from the peer, 24 bits
  uint32_t path_mtu = 1024;           // ReadyToReceive: 256, 512, 1024, 2048 or 4096
  uint32_t send_psn = 0;              // ReadyToSend: the first PSN that we send, 24 bits
  ReliabilityOptions reliability;     // ReadyToReceive, ReadyToSend
};

// A device's abilities. A call that needs a missing one returns kUnimplemented.
struct Limits {
  bool atomics = false;
  bool immediate = false;       // *WithImm
  bool memory_windows = false;  // type 2
  bool shared_receive = false;
  bool manual_modify = false;                 // QueuePair::Modify to other states than Error
  bool read_sink_needs_remote_write = false;  // iWARP: a READ's local region needs kRemoteWrite

  // True if a connection takes three messages, as in CM: the acceptor hears that the asker took its
  // answer. If false (iWARP's MPA has two) the acceptor may come up for an asker that has given up,
  // and is disconnected then.
  bool three_way_connect = false;

  // True if the peer's device acknowledges each send and write as a whole: the request completes
  // when it has arrived, fails with the reason if it was refused, and is repeated while no receive
  // is posted. If false (iWARP) it completes once its bytes are on their way, and a fault at the
  // other side ends the connection.
  bool acknowledgements = false;

  bool region_read_rights = false;  // true if peers can read only regions with kRemoteRead
  bool queue_pair_rights = false;   // true if a queue pair's remote_access counts, beside the region's
  bool solicited_events = false;    // true if a queue armed for solicited completions sleeps through others

  // True if dropping a region or window stops even what is under way there: once the destructor
  // returns, no byte is read or written. If false (SoftiWARP, see siw_quirks_test) it stops only
  // what has not begun. A send, a write or an answer to a READ that has begun goes on to its end,
  // with the bytes that stand there by then; a READ whose first bytes have come is written to its
  // end; of peers' sends and writes only the piece that is being placed is finished. Before the
  // memory is used again these requests must have completed (a peer's: the peer says so), or the
  // queue pairs that carry them must be dropped, which stops all of it.
  bool drop_stops_transfers = false;

  uint32_t max_inline = 0;  // bytes
  uint32_t max_sges = 0;    // of a send or receive request
  uint32_t max_read_sges = 0;
  uint32_t max_send_requests = 0;
  uint32_t max_receive_requests = 0;
  uint32_t max_completions = 0;
  uint32_t max_queue_pairs = 0;
  uint32_t max_reads = 0;          // largest reads_outstanding and reads_served
  uint64_t max_message = 0;        // bytes
  uint32_t max_private_data = 56;  // bytes, at least 52: left to the application by CM over IP and the device
  uint32_t active_mtu = 0;         // bytes, the port's largest path MTU as configured
  // True if repeating a request that was not lost may end the connection: rdma_rxe of Linux 6.1
  // repeats it without its bytes, which the peer refuses.
  bool repeats_may_fail = false;
  // Local CA ACK delay (11.2.1.2): the longest time until the device acknowledges a request. A peer
  // with a shorter ack timeout may take for lost what is on its way.
  base::Duration ack_delay;
};

}  // namespace tokamak::verbs
