// The vocabulary of RDMA that both sides of the verbs seam share: keys, requests, completions,
// states, limits.
//
// Every name maps to one of ibverbs (docs/verbs.md has the table); chapter numbers are the
// InfiniBand Architecture Specification's, volume 1.
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

// Where a device or a service is reached: an IP address (IPv4 is kept IPv4-mapped, as in a RoCE
// GID) and a port. For a connection the port names the service (RDMA IP CM service id), it is no
// UDP port.
struct Address {
  std::array<uint8_t, 16> ip{};
  uint16_t port = 0;

  // Where a software NIC has a UDP port other than RoCE's, for several on one IP address: that
  // port. 0: whichever the device that is asked to connect has itself.
  uint16_t udp_port = 0;

  // "10.0.0.1:7000", "[fd00::1]:7000", "10.0.0.1:7000@4792", which names the UDP port; a port that
  // is not given is 0.
  static absl::StatusOr<Address> Parse(absl::string_view text);
  std::string ToString() const;
  bool is_ipv4() const;
  bool is_unspecified() const;  // "0.0.0.0", "::": every address of a machine, and none that a peer could reach
  bool is_loopback() const;     // 127.0.0.0/8, ::1
  bool is_link_local() const;   // IPv6 fe80::/10, which leads somewhere only together with an interface
  bool is_multicast() const;    // 224.0.0.0/4, ff00::/8: a group

  bool operator==(const Address& other) const {
    return ip == other.ip && port == other.port && udp_port == other.udp_port;
  }
  bool operator!=(const Address& other) const { return !(*this == other); }
  bool operator<(const Address& other) const {
    return std::tie(ip, port, udp_port) < std::tie(other.ip, other.port, other.udp_port);
  }
};

// Rights to a memory region or window. Combine with |. (10.6.3)
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
  // Arriving bytes may be placed in any order until a completion says that they are there, with all
  // that came before them: for memory that is looked at only then, and never written twice
  // meanwhile. Some devices are faster so (PCI Express's relaxed ordering); the others ignore
  // it. Not with kRemoteAtomic.
  kRelaxedOrdering = 64,
};
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}

enum class Opcode : uint8_t {
  kSend,
  kSendWithImm,
  kSendWithInvalidate,  // and the peer's device takes back the key of a window; needs kFence behind READs through it
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
  kFence = 4,   // starts only after earlier READs and atomics of this queue pair have completed; kLocalInvalidate: all
  kInline = 8,  // the bytes are taken during the call; lkeys are not looked at
};
constexpr SendFlags operator|(SendFlags a, SendFlags b) {
  return static_cast<SendFlags>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}

// A piece of local memory, scattered to or gathered from.
struct Sge {
  uint8_t* address = nullptr;
  uint32_t length = 0;  // bytes
  uint32_t lkey = 0;
};

class MemoryRegion;
class MemoryWindow;

// One work request for the send queue. Spans are looked at during PostSend only; the memory behind
// the sges belongs to the device until the request has completed (with kInline until PostSend
// returns).
struct SendRequest {
  uint64_t id = 0;  // comes back in the completion
  Opcode opcode = Opcode::kSend;
  SendFlags flags = SendFlags{};
  absl::Span<const Sge> sges;
  uint32_t immediate = 0;       // host order; kSendWithImm, kWriteWithImm
  uint64_t remote_address = 0;  // writes, reads, atomics (8-byte aligned)
  uint32_t rkey = 0;            // the same; the key to drop for kSendWithInvalidate and kLocalInvalidate
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

// 11.6.2; one to one with IBV_WC_*.
enum class CompletionStatus : uint8_t {
  kSuccess,
  kLocalLength,           // a message longer than the receive that met it, or than the device's limit
  kLocalQpOperation,      // the queue pair could not do what was asked
  kLocalProtection,       // a local key that does not cover the memory
  kFlushed,               // the queue pair was in Error when the request's turn came
  kWindowBind,            // a window that could not be bound or invalidated
  kBadResponse,           // the peer's answer was malformed
  kLocalAccess,           // a receive's memory that may not be written
  kRemoteInvalidRequest,  // the peer could not make sense of the request
  kRemoteAccess,          // a remote key that does not allow it
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
  kReceiveWriteWithImm,  // the peer's kWriteWithImm consumed this receive
};

// With a status other than kSuccess only id, status, queue_pair_number and provider_code mean
// anything.
struct Completion {
  uint64_t id = 0;
  CompletionStatus status = CompletionStatus::kSuccess;
  CompletionOpcode opcode = CompletionOpcode::kSend;
  bool has_immediate = false;
  bool has_invalidated = false;  // the peer's SendWithInvalidate dropped `invalidated_rkey`
  bool solicited = false;        // receives: the peer asked for an event; software NICs only
  uint32_t byte_count = 0;       // receives, reads, atomics
  uint32_t immediate = 0;
  uint32_t invalidated_rkey = 0;
  uint32_t queue_pair_number = 0;
  uint32_t source_queue_pair = 0;  // of a received datagram (datagrams.h): who sent it
  uint32_t provider_code = 0;      // the device's own word for an error, for logs only
};

// 10.3.1. The legal steps are those of ibv_modify_qp.
enum class QueuePairState : uint8_t { kReset, kInit, kReadyToReceive, kReadyToSend, kError };
const char* ToString(QueuePairState state);

// The path MTUs that the specification knows. (9.6.1.2.1)
constexpr uint32_t kMinMtu = 256;
constexpr uint32_t kMaxMtu = 4096;

// Retry counts stop at 6: 7 means "for ever" to a responder that is not ready, and to some devices
// for every time-out.
constexpr uint8_t kMaxRetryCount = 6;

// How a reliable connection behaves once it is up. Both sides of a connection may differ.
struct ReliabilityOptions {
  base::Duration ack_timeout = base::Milliseconds(67);  // rounded up to 4.096 us x 2^n, n in 1..31 (9.7.6.1.3)
  uint8_t retry_count = kMaxRetryCount;                 // 0..6
  uint8_t rnr_retry_count = kMaxRetryCount;             // 0..6
  base::Duration rnr_delay =
      base::Microseconds(640);     // what we ask a peer to wait; rounded up in the RNR timer table (9.7.5.2.8)
  uint8_t reads_outstanding = 16;  // READs and atomics that we may have in flight (initiator depth)
  uint8_t reads_served = 16;       // READs and atomics that the peer may have in flight (responder resources)
};

// Attributes for walking a queue pair by hand, see QueuePair::Modify.
struct QueuePairAttributes {
  Access remote_access = kLocalRead;  // Init: what any peer may do through this queue pair
  Address peer;                       // ReadyToReceive: the peer device's address; `port` is not used
  uint32_t peer_number = 0;           // ReadyToReceive
  uint32_t receive_psn = 0;           // ReadyToReceive: the first PSN that the peer will send, 24 bits
  uint32_t path_mtu = 1024;           // ReadyToReceive: 256, 512, 1024, 2048 or 4096
  uint32_t send_psn = 0;              // ReadyToSend: the first PSN that we send, 24 bits
  ReliabilityOptions reliability;     // ReadyToReceive, ReadyToSend
};

// Abilities of a device. For an ability that is a call, zero or false means that the call is
// refused with kUnimplemented.
struct Limits {
  bool atomics = false;
  bool immediate = false;                     // *WithImm
  bool memory_windows = false;                // type 2: bound and invalidated by send requests
  bool shared_receive = false;                // shared receive queues
  bool manual_modify = false;                 // QueuePair::Modify beyond Error
  bool read_sink_needs_remote_write = false;  // iWARP: a READ's local region must have kRemoteWrite

  // A connection is made in three messages, as by CM: who accepts hears that the asker took the
  // answer. Without (iWARP's MPA has two) the answer is the last word: who accepts may come up for
  // an asker that gave up meanwhile, and is disconnected then.
  bool three_way_connect = false;

  // The peer's device judges each send and write as a whole and answers: the request completes when
  // it is there, fails with the reason where it is refused, and is tried again where it met no
  // receive. Without (iWARP) it completes when its bytes are on their way, is judged in pieces as
  // they come, and what is wrong at the other side ends the connection.
  bool acknowledgements = false;

  bool region_read_rights = false;  // peers cannot read a region without kRemoteRead
  bool queue_pair_rights = false;   // a queue pair's remote_access is looked at, beside the region's
  bool solicited_events = false;    // a queue that is armed for solicited completions alone sleeps through others

  // Dropping a region or window stops even what goes on there: when the destructor returns, no byte
  // of it is read or written any more. Without (SoftiWARP, see siw_quirks_test) that stops only
  // what has not begun. A send, a write or the answer to a peer's READ that has begun to leave it
  // leaves it to the end, with the bytes that stand there by then; a READ whose first bytes have
  // come is written there to the end; and what peers send and write into it stops, but for the
  // piece that another processor is placing at that moment. So before such memory is used again
  // these requests have completed (a peer's: the peer says so), or the queue pairs that carry them
  // are dropped, which stops all of it.
  bool drop_stops_transfers = false;

  uint32_t max_inline = 0;  // bytes
  uint32_t max_sges = 0;    // for each send or receive request
  uint32_t max_read_sges = 0;
  uint32_t max_send_requests = 0;     // queue depth
  uint32_t max_receive_requests = 0;  // queue depth
  uint32_t max_completions = 0;       // completion queue depth
  uint32_t max_queue_pairs = 0;
  uint32_t max_reads = 0;          // largest reads_outstanding and reads_served
  uint64_t max_message = 0;        // bytes, one request
  uint32_t max_private_data = 56;  // bytes, 52 at least: what CM over IP and the device leave to the application
  uint32_t active_mtu = 0;         // bytes, largest path MTU of the port as it is configured
  // The device can get lost where a request is sent again that was not lost (rdma_rxe of Linux 6.1
  // sends it without its bytes, which the peer refuses as invalid), and that ends the connection.
  bool repeats_may_fail = false;
  // 11.2.1.2, local CA ACK delay: the longest that the device takes to acknowledge what it was
  // sent. To a peer whose ack timeout is shorter, what is on its way may look lost.
  base::Duration ack_delay;
};

}  // namespace tokamak::verbs
