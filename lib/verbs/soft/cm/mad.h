// The messages of connection managers: IB CM MADs, 256 bytes on QP 1, to make and end a connection
// (12.6) or ask for a datagram queue pair (12.11).
//
// Values are those of the Linux kernel's rdma_cm over RoCEv2; docs/connection.md draws the bytes.
// The private data of a REQ or SIDR_REQ starts with the RDMA IP CM header (annex A11), which leaves
// 56 or 180 bytes to the application.
//
// Law: DecodeMad(EncodeMad(mad)) == mad in every field on the wire.
// Law: DecodeMad trusts no byte; its values are in the fields' ranges, not yet plausible.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

constexpr size_t kMadLength = 256;
constexpr size_t kReqPrivateData = 92;
constexpr size_t kRepPrivateData = 196;
constexpr size_t kRejPrivateData = 148;
constexpr size_t kRejInformation = 72;
constexpr size_t kIpHeaderSize = 36;
constexpr size_t kUserPrivateData = kReqPrivateData - kIpHeaderSize;
static_assert(kUserPrivateData == 56, "Limits::max_private_data");
constexpr size_t kSidrReqPrivateData = 216;
constexpr size_t kSidrRepPrivateData = 136;
constexpr size_t kSidrRepInformation = 72;

using MadBytes = std::array<uint8_t, kMadLength>;
// An application's private data. The wire has no length: the receiver sees all 56 bytes, with zeros
// at the end.
using UserData = std::array<uint8_t, kUserPrivateData>;
// Private data of any message: a REQ has room for the first 56 bytes, a REJ for 148.
using AnyData = std::array<uint8_t, kRepPrivateData>;
using ServiceData = std::array<uint8_t, kSidrReqPrivateData - kIpHeaderSize>;

// The message that a REJ or MRA is about.
enum class MadKind : uint8_t { kReq = 0, kRep = 1, kOther = 2 };

// 12.6.7.2; others are passed through.
enum class RejectReason : uint16_t {
  kNoQueuePair = 1,
  kNoResources = 3,
  kTimeout = 4,
  kUnsupportedRequest = 5,
  kInvalidCommunicationId = 6,
  kInvalidServiceId = 8,
  kInvalidTransportType = 9,
  kStaleConnection = 10,
  kInvalidGid = 12,  // also the kernel's answer to a bad P_Key
  kInvalidMtu = 26,  // additional information: one byte, the largest MTU code allowed
  kInsufficientResponderResources = 27,
  kConsumer = 28,
  kInvalidClassVersion = 31,
};

// REQ and REP name the PSN that their sender expects first.
struct ReqMad {
  uint32_t local_id = 0;
  uint64_t service_id = 0;
  uint64_t ca_guid = 0;
  uint32_t queue_pair = 0;
  uint8_t responder_resources = 0;  // READs and atomics that the sender serves
  uint8_t initiator_depth = 0;      // READs and atomics that the sender may have in flight
  uint8_t remote_cm_timeout = 0;    // 5 bits (time_codes.h): the receiver's time to answer
  uint8_t transport_type = 0;       // 2 bits; 0: RC
  uint32_t starting_psn = 0;
  uint8_t local_cm_timeout = 0;  // 5 bits: the sender's time to answer
  uint8_t retry_count = 0;       // 3 bits
  uint16_t pkey = 0xffff;
  uint8_t mtu_code = 0;         // 4 bits (MtuCode)
  uint8_t rnr_retry_count = 0;  // 3 bits
  uint8_t max_cm_retries = 0;   // 4 bits
  std::array<uint8_t, 16> local_gid{};
  std::array<uint8_t, 16> remote_gid{};
  uint8_t hop_limit = 64;
  uint8_t local_ack_timeout = 0;  // 5 bits
  std::array<uint8_t, kReqPrivateData> private_data{};
};

// Asks the peer not to repeat a message for a while: its sender is working on it.
struct MraMad {
  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  MadKind answers = MadKind::kReq;
  uint8_t service_timeout = 0;  // 5 bits
};

struct RejMad {
  uint32_t local_id = 0;   // 0: the sender has none
  uint32_t remote_id = 0;  // 0: the sender does not know it
  MadKind rejects = MadKind::kReq;
  RejectReason reason = RejectReason::kConsumer;
  uint8_t information_length = 0;  // at most kRejInformation
  std::array<uint8_t, kRejInformation> information{};
  std::array<uint8_t, kRejPrivateData> private_data{};
};

struct RepMad {
  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  uint32_t queue_pair = 0;
  uint32_t starting_psn = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t target_ack_delay = 0;  // 5 bits
  uint8_t rnr_retry_count = 0;   // 3 bits
  uint64_t ca_guid = 0;
  std::array<uint8_t, kRepPrivateData> private_data{};
};

struct RtuMad {
  uint32_t local_id = 0;
  uint32_t remote_id = 0;
};

struct DreqMad {
  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  uint32_t remote_queue_pair = 0;  // the receiver's
};

struct DrepMad {
  uint32_t local_id = 0;
  uint32_t remote_id = 0;
};

// 12.11.2.2; others are passed through.
enum class SidrStatus : uint8_t {
  kSuccess = 0,
  kUnsupportedService = 1,
  kRejected = 2,  // by the service
  kNoQueuePair = 3,
};

struct SidrReqMad {
  uint32_t request_id = 0;
  uint16_t pkey = 0xffff;
  uint64_t service_id = 0;
  std::array<uint8_t, kSidrReqPrivateData> private_data{};
};

struct SidrRepMad {
  uint32_t request_id = 0;  // the question's
  SidrStatus status = SidrStatus::kSuccess;
  uint8_t information_length = 0;  // at most kSidrRepInformation
  uint32_t queue_pair = 0;
  uint64_t service_id = 0;
  uint32_t qkey = 0;
  std::array<uint8_t, kSidrRepInformation> information{};
  std::array<uint8_t, kSidrRepPrivateData> private_data{};
};

struct Mad {
  uint64_t transaction = 0;  // an answer has the question's
  std::variant<ReqMad, MraMad, RejMad, RepMad, RtuMad, DreqMad, DrepMad, SidrReqMad, SidrRepMad> body;
};

// The IDs by which a message's sender and receiver know its connection; 0: none. IdsOf returns
// nothing for SIDR messages, which are about no connection.
struct ConnectionIds {
  uint32_t local = 0;  // the sender's
  uint32_t remote = 0;
};
std::optional<ConnectionIds> IdsOf(const Mad& mad);

// Returns a name for logs and tests: "REQ".
const char* NameOf(const Mad& mad);

// CHECKs that each value fits its field.
MadBytes EncodeMad(const Mad& mad);

// kInvalidArgument, with the first fault, unless `bytes` are a CM MAD of a kind above: 256 bytes,
// base version 1, class CM, class version 2, method Send.
absl::StatusOr<Mad> DecodeMad(absl::Span<const uint8_t> bytes);

// Spaces with ports of their own (A11.2): RDMA_PS_TCP and RDMA_PS_UDP.
enum class PortSpace : uint16_t {
  kTcp = 0x0106,  // connections
  kUdp = 0x0111,  // datagrams
};

// Convert a port to its RDMA IP CM service ID, and back; kInvalidArgument for any other service.
uint64_t ServiceId(PortSpace space, uint16_t port);
absl::StatusOr<uint16_t> ServicePort(PortSpace space, uint64_t service_id);

// The IP CM header and the application's bytes, as private data of a REQ or SIDR_REQ, and back.
// kInvalidArgument: another version of the header or of IP. `destination` has no port: the service
// ID has it.
struct IpHeader {
  Address source;
  Address destination;
};
std::array<uint8_t, kReqPrivateData> JoinPrivateData(const IpHeader& header, const UserData& user);
absl::StatusOr<IpHeader> SplitPrivateData(const std::array<uint8_t, kReqPrivateData>& data, UserData* user);
std::array<uint8_t, kSidrReqPrivateData> JoinPrivateData(const IpHeader& header, const ServiceData& user);
absl::StatusOr<IpHeader> SplitPrivateData(const std::array<uint8_t, kSidrReqPrivateData>& data, ServiceData* user);

// The code of 256 is 1, of 4096 it is 5. MtuOf returns 0 for another code.
uint8_t MtuCode(uint32_t mtu);
uint32_t MtuOf(uint8_t code);

}  // namespace tokamak::verbs::soft
