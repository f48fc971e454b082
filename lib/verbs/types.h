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

// The address of a device or service: IP (IPv4 is IPv4-mapped, as in a RoCE GID) and port, which
// names the service of a connection (RDMA IP CM service ID) and is no UDP port.
struct Address {
  std::array<uint8_t, 16> ip{};
  uint16_t port = 0;

  // A software NIC's UDP port other than RoCE's, for several on one IP address. 0: that of the
  // connecting device.
  uint16_t udp_port = 0;

  // Parses "10.0.0.1:7000", "[fd00::1]:7000", "10.0.0.1:7000@4792" with the UDP port; a missing
  // port is 0.
  static absl::StatusOr<Address> Parse(absl::string_view text);
  std::string ToString() const;
  bool is_ipv4() const;
  bool is_unspecified() const;  // "0.0.0.0", "::": every address of a machine, none for a peer
  bool is_loopback() const;     // 127.0.0.0/8, ::1
  bool is_link_local() const;   // fe80::/10, of an interface
  bool is_multicast() const;    // 224.0.0.0/4, ff00::/8

  bool operator==(const Address& other) const {
    return ip == other.ip && port == other.port && udp_port == other.udp_port;
  }
  bool operator!=(const Address& other) const { return !(*this == other); }
  bool operator<(const Address& other) const {
    return std::tie(ip, port, udp_port) < std::tie(other.ip, other.port, other.udp_port);
  }
};

// Rights to a memory region or window (10.6.3).
enum Access : uint32_t {
  kLocalRead = 0,  // always allowed
  kLocalWrite = 1,
  kRemoteWrite = 2,  // needs kLocalWrite
  kRemoteRead = 4,
  kRemoteAtomic = 8,  // needs kLocalWrite
  kWindowBind = 16,
  // Bytes are never read nor written, and the memory need not exist: for simulations of lengths and
  // times. Software NICs only; not with kRemoteAtomic.
  kPhantom = 32,
  // Bytes may be placed in any order until a completion, which covers all before it: for memory
  // looked at only then, and not written twice meanwhile. Faster on some devices (PCI Express
  // relaxed ordering), ignored by others. Not with kRemoteAtomic.
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
  kSignaled = 1,   // completes on success, too
  kSolicited = 2,  // the receiver's solicited-only notification fires
  kFence = 4,      // waits for earlier READs and atomics of this queue pair; kLocalInvalidate: for all
  kInline = 8,     // bytes are taken during the call; no lkeys
};
constexpr SendFlags operator|(SendFlags a, SendFlags b) {
  return static_cast<SendFlags>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}

// A piece of local memory.
struct Sge {
  uint8_t* address = nullptr;
  uint32_t length = 0;  // bytes
  uint32_t lkey = 0;
};

class MemoryRegion;
class MemoryWindow;

// A work request of the send queue. Spans are looked at during PostSend only; the sges' memory is
// the device's until completion (kInline: until PostSend returns).
struct SendRequest {
  uint64_t id = 0;  // of the completion
  Opcode opcode = Opcode::kSend;
  SendFlags flags = SendFlags{};
  absl::Span<const Sge> sges;
  uint32_t immediate = 0;       // host order; kSendWithImm, kWriteWithImm
  uint64_t remote_address = 0;  // writes, reads, atomics (8-byte aligned)
  uint32_t rkey = 0;            // also; kSendWithInvalidate, kLocalInvalidate: the key to revoke
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

// Requests taken of a batch: all, or those before the first bad one (ibverbs' bad_wr), with the
// reason.
struct PostResult {
  size_t accepted = 0;
  absl::Status status;
  bool ok() const { return status.ok(); }
};

// 11.6.2; the IBV_WC_*.
enum class CompletionStatus : uint8_t {
  kSuccess,
  kLocalLength,           // longer than its receive, or the device's limit
  kLocalQpOperation,      // impossible for the queue pair
  kLocalProtection,       // a local key does not cover the memory
  kFlushed,               // in Error at its turn
  kWindowBind,            // not bound or invalidated
  kBadResponse,           // malformed answer
  kLocalAccess,           // a receive's memory may not be written
  kRemoteInvalidRequest,  // the peer does not understand it
  kRemoteAccess,          // refused by the remote key
  kRemoteOperation,       // failed at the peer
  kRetryExceeded,         // no answer within (retry_count + 1) time-outs
  kRnrRetryExceeded,      // no receive at the peer, rnr_retry_count + 1 times
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

// On failure only id, status, queue_pair_number and provider_code count.
struct Completion {
  uint64_t id = 0;
  CompletionStatus status = CompletionStatus::kSuccess;
  CompletionOpcode opcode = CompletionOpcode::kSend;
  bool has_immediate = false;
  bool has_invalidated = false;  // the peer revoked `invalidated_rkey`
  bool solicited = false;        // receives; software NICs only
  uint32_t byte_count = 0;       // receives, reads, atomics
  uint32_t immediate = 0;
  uint32_t invalidated_rkey = 0;
  uint32_t queue_pair_number = 0;
  uint32_t source_queue_pair = 0;  // of a received datagram (datagrams.h)
  uint32_t provider_code = 0;      // the device's own error code, for logs
};

// 10.3.1; steps as ibv_modify_qp.
enum class QueuePairState : uint8_t { kReset, kInit, kReadyToReceive, kReadyToSend, kError };
const char* ToString(QueuePairState state);

// 9.6.1.2.1.
constexpr uint32_t kMinMtu = 256;
constexpr uint32_t kMaxMtu = 4096;

// 7 is "for ever" to an RNR, and to some devices for every time-out.
constexpr uint8_t kMaxRetryCount = 6;

// Sides may differ.
struct ReliabilityOptions {
  base::Duration ack_timeout = base::Milliseconds(67);  // rounded up to 4.096 us x 2^n, n in 1..31 (9.7.6.1.3)
  uint8_t retry_count = kMaxRetryCount;                 // 0..6
  uint8_t rnr_retry_count = kMaxRetryCount;             // 0..6
  base::Duration rnr_delay = base::Microseconds(640);  // asked of a peer; rounded up in the RNR timer table (9.7.5.2.8)
  uint8_t reads_outstanding = 16;                      // READs and atomics in flight from here (initiator depth)
  uint8_t reads_served = 16;  // READs and atomics in flight from the peer (responder resources)
};

// See QueuePair::Modify.
struct QueuePairAttributes {
  Access remote_access = kLocalRead;  // Init: any peer's rights
  Address peer;                       // ReadyToReceive: device address; `port` is not used
  uint32_t peer_number = 0;           // ReadyToReceive
  uint32_t receive_psn = 0;           // ReadyToReceive: the peer's first, 24 bits
  uint32_t path_mtu = 1024;           // ReadyToReceive: 256, 512, 1024, 2048 or 4096
  uint32_t send_psn = 0;              // ReadyToSend: our first, 24 bits
  ReliabilityOptions reliability;     // ReadyToReceive, ReadyToSend
};

// A device's abilities; a call without its ability returns kUnimplemented.
struct Limits {
  bool atomics = false;
  bool immediate = false;       // *WithImm
  bool memory_windows = false;  // type 2
  bool shared_receive = false;
  bool manual_modify = false;                 // QueuePair::Modify, beyond to Error
  bool read_sink_needs_remote_write = false;  // iWARP: a READ's local region needs kRemoteWrite

  // CM's three messages: the acceptor hears that the asker took the answer. Without (iWARP's MPA)
  // it may come up for an asker that gave up, and is disconnected then.
  bool three_way_connect = false;

  // The peer's device judges each send and write as a whole: the request completes on arrival,
  // fails with the reason of a refusal, and is repeated where no receive was posted. Without
  // (iWARP) it completes once on its way, and a fault at the other side ends the connection.
  bool acknowledgements = false;

  bool region_read_rights = false;  // true if peers need kRemoteRead
  bool queue_pair_rights = false;   // true if a queue pair's remote_access counts, beside the region's
  bool solicited_events = false;    // true if arming for solicited completions sleeps through others

  // Dropping a region or window stops even what goes on there: once the destructor returns no byte
  // is read or written. Without (SoftiWARP, see siw_quirks_test) it stops only what has not begun:
  // a begun send, write or answer to a READ goes on with the bytes there by then, and so does a
  // READ whose first bytes have come; of peers' sends and writes only the piece being placed.
  // Before reuse of the memory these must have completed (a peer's: it says so), or their queue
  // pairs be dropped, which stops all.
  bool drop_stops_transfers = false;

  uint32_t max_inline = 0;  // bytes
  uint32_t max_sges = 0;    // of a request
  uint32_t max_read_sges = 0;
  uint32_t max_send_requests = 0;
  uint32_t max_receive_requests = 0;
  uint32_t max_completions = 0;
  uint32_t max_queue_pairs = 0;
  uint32_t max_reads = 0;          // bounds reads_outstanding and reads_served
  uint64_t max_message = 0;        // bytes
  uint32_t max_private_data = 56;  // bytes, at least 52, beside CM over IP and the device
  uint32_t active_mtu = 0;         // bytes, as the port is configured
  // Repeating a request that was not lost may end the connection: rdma_rxe of Linux 6.1 repeats
  // without the bytes, which the peer refuses.
  bool repeats_may_fail = false;
  // Local CA ACK delay (11.2.1.2): the longest until the device acknowledges. A shorter ack timeout
  // takes packets for lost.
  base::Duration ack_delay;
};

}  // namespace tokamak::verbs
