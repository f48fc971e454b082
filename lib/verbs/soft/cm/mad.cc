#include "lib/verbs/soft/cm/mad.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/check.h"

namespace tokamak::verbs::soft {
namespace {

using base::LoadBig16;
using base::LoadBig24;
using base::LoadBig32;
using base::LoadBig64;
using base::StoreBig16;
using base::StoreBig24;
using base::StoreBig32;
using base::StoreBig64;

// MAD header (13.4.3): base version, class, class version, method, status, ..., TID, attribute,
// ..., modifier.
constexpr size_t kHeader = 24;
constexpr uint8_t kBaseVersion = 1;
constexpr uint8_t kClassCm = 7;
constexpr uint8_t kClassVersion = 2;
constexpr uint8_t kMethodSend = 3;

// In the order of Mad::body.
constexpr uint16_t kFirstAttribute = 0x10;
constexpr const char* kNames[] = {"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP"};
static_assert(std::variant_size_v<decltype(Mad::body)> == 9);

uint8_t Bits(uint8_t byte, int shift, int width) { return static_cast<uint8_t>(byte >> shift & ((1 << width) - 1)); }
uint8_t Place(uint8_t value, int shift, int width) {
  CHECK_LT(value, 1 << width);
  return static_cast<uint8_t>(value << shift);
}
void PlaceQueuePair(uint8_t* p, uint32_t number) {
  CHECK_LE(number, 0xffffffu);
  StoreBig24(p, number);
}

// Each message's fields after the header: Put writes into zeros, Get reads.

void Put(const ReqMad& m, uint8_t* p) {
  StoreBig32(p, m.local_id);
  StoreBig64(p + 8, m.service_id);
  StoreBig64(p + 16, m.ca_guid);
  PlaceQueuePair(p + 32, m.queue_pair);
  p[35] = m.responder_resources;
  p[39] = m.initiator_depth;
  p[43] = Place(m.remote_cm_timeout, 3, 5) | Place(m.transport_type, 1, 2);
  PlaceQueuePair(p + 44, m.starting_psn);
  p[47] = Place(m.local_cm_timeout, 3, 5) | Place(m.retry_count, 0, 3);
  StoreBig16(p + 48, m.pkey);
  p[50] = Place(m.mtu_code, 4, 4) | Place(m.rnr_retry_count, 0, 3);
  p[51] = Place(m.max_cm_retries, 4, 4);
  StoreBig16(p + 52, 0xffff);  // LIDs mean nothing over IP
  StoreBig16(p + 54, 0xffff);
  std::copy(m.local_gid.begin(), m.local_gid.end(), p + 56);
  std::copy(m.remote_gid.begin(), m.remote_gid.end(), p + 72);
  p[93] = m.hop_limit;
  p[95] = Place(m.local_ack_timeout, 3, 5);
  std::copy(m.private_data.begin(), m.private_data.end(), p + 140);
}

void Get(const uint8_t* p, ReqMad* m) {
  m->local_id = LoadBig32(p);
  m->service_id = LoadBig64(p + 8);
  m->ca_guid = LoadBig64(p + 16);
  m->queue_pair = LoadBig24(p + 32);
  m->responder_resources = p[35];
  m->initiator_depth = p[39];
  m->remote_cm_timeout = Bits(p[43], 3, 5);
  m->transport_type = Bits(p[43], 1, 2);
  m->starting_psn = LoadBig24(p + 44);
  m->local_cm_timeout = Bits(p[47], 3, 5);
  m->retry_count = Bits(p[47], 0, 3);
  m->pkey = LoadBig16(p + 48);
  m->mtu_code = Bits(p[50], 4, 4);
  m->rnr_retry_count = Bits(p[50], 0, 3);
  m->max_cm_retries = Bits(p[51], 4, 4);
  std::copy_n(p + 56, m->local_gid.size(), m->local_gid.begin());
  std::copy_n(p + 72, m->remote_gid.size(), m->remote_gid.begin());
  m->hop_limit = p[93];
  m->local_ack_timeout = Bits(p[95], 3, 5);
  std::copy_n(p + 140, m->private_data.size(), m->private_data.begin());
}

void Put(const MraMad& m, uint8_t* p) {
  StoreBig32(p, m.local_id);
  StoreBig32(p + 4, m.remote_id);
  p[8] = Place(static_cast<uint8_t>(m.answers), 6, 2);
  p[9] = Place(m.service_timeout, 3, 5);
}

void Get(const uint8_t* p, MraMad* m) {
  m->local_id = LoadBig32(p);
  m->remote_id = LoadBig32(p + 4);
  m->answers = static_cast<MadKind>(Bits(p[8], 6, 2));
  m->service_timeout = Bits(p[9], 3, 5);
}

void Put(const RejMad& m, uint8_t* p) {
  CHECK_LE(m.information_length, kRejInformation);
  StoreBig32(p, m.local_id);
  StoreBig32(p + 4, m.remote_id);
  p[8] = Place(static_cast<uint8_t>(m.rejects), 6, 2);
  p[9] = Place(m.information_length, 1, 7);
  StoreBig16(p + 10, static_cast<uint16_t>(m.reason));
  std::copy(m.information.begin(), m.information.end(), p + 12);
  std::copy(m.private_data.begin(), m.private_data.end(), p + 84);
}

void Get(const uint8_t* p, RejMad* m) {
  m->local_id = LoadBig32(p);
  m->remote_id = LoadBig32(p + 4);
  m->rejects = static_cast<MadKind>(Bits(p[8], 6, 2));
  m->information_length = Bits(p[9], 1, 7);
  m->reason = static_cast<RejectReason>(LoadBig16(p + 10));
  std::copy_n(p + 12, m->information.size(), m->information.begin());
  std::copy_n(p + 84, m->private_data.size(), m->private_data.begin());
}

void Put(const RepMad& m, uint8_t* p) {
  StoreBig32(p, m.local_id);
  StoreBig32(p + 4, m.remote_id);
  PlaceQueuePair(p + 12, m.queue_pair);
  PlaceQueuePair(p + 20, m.starting_psn);
  p[24] = m.responder_resources;
  p[25] = m.initiator_depth;
  p[26] = Place(m.target_ack_delay, 3, 5);
  p[27] = Place(m.rnr_retry_count, 5, 3);
  StoreBig64(p + 28, m.ca_guid);
  std::copy(m.private_data.begin(), m.private_data.end(), p + 36);
}

void Get(const uint8_t* p, RepMad* m) {
  m->local_id = LoadBig32(p);
  m->remote_id = LoadBig32(p + 4);
  m->queue_pair = LoadBig24(p + 12);
  m->starting_psn = LoadBig24(p + 20);
  m->responder_resources = p[24];
  m->initiator_depth = p[25];
  m->target_ack_delay = Bits(p[26], 3, 5);
  m->rnr_retry_count = Bits(p[27], 5, 3);
  m->ca_guid = LoadBig64(p + 28);
  std::copy_n(p + 36, m->private_data.size(), m->private_data.begin());
}

template <typename Ids>
void PutIds(const Ids& m, uint8_t* p) {
  StoreBig32(p, m.local_id);
  StoreBig32(p + 4, m.remote_id);
}
template <typename Ids>
void GetIds(const uint8_t* p, Ids* m) {
  m->local_id = LoadBig32(p);
  m->remote_id = LoadBig32(p + 4);
}
void Put(const RtuMad& m, uint8_t* p) { PutIds(m, p); }
void Put(const DrepMad& m, uint8_t* p) { PutIds(m, p); }
void Put(const DreqMad& m, uint8_t* p) {
  PutIds(m, p);
  PlaceQueuePair(p + 8, m.remote_queue_pair);
}
void Get(const uint8_t* p, RtuMad* m) { GetIds(p, m); }
void Get(const uint8_t* p, DrepMad* m) { GetIds(p, m); }
void Get(const uint8_t* p, DreqMad* m) {
  GetIds(p, m);
  m->remote_queue_pair = LoadBig24(p + 8);
}

void Put(const SidrReqMad& m, uint8_t* p) {
  StoreBig32(p, m.request_id);
  StoreBig16(p + 4, m.pkey);
  StoreBig64(p + 8, m.service_id);
  std::copy(m.private_data.begin(), m.private_data.end(), p + 16);
}

void Get(const uint8_t* p, SidrReqMad* m) {
  m->request_id = LoadBig32(p);
  m->pkey = LoadBig16(p + 4);
  m->service_id = LoadBig64(p + 8);
  std::copy_n(p + 16, m->private_data.size(), m->private_data.begin());
}

void Put(const SidrRepMad& m, uint8_t* p) {
  CHECK_LE(m.information_length, kSidrRepInformation);
  StoreBig32(p, m.request_id);
  p[4] = static_cast<uint8_t>(m.status);
  p[5] = m.information_length;
  PlaceQueuePair(p + 8, m.queue_pair);
  StoreBig64(p + 12, m.service_id);
  StoreBig32(p + 20, m.qkey);
  std::copy(m.information.begin(), m.information.end(), p + 24);
  std::copy(m.private_data.begin(), m.private_data.end(), p + 96);
}

void Get(const uint8_t* p, SidrRepMad* m) {
  m->request_id = LoadBig32(p);
  m->status = static_cast<SidrStatus>(p[4]);
  m->information_length = p[5];
  m->queue_pair = LoadBig24(p + 8);
  m->service_id = LoadBig64(p + 12);
  m->qkey = LoadBig32(p + 20);
  std::copy_n(p + 24, m->information.size(), m->information.begin());
  std::copy_n(p + 96, m->private_data.size(), m->private_data.begin());
}

template <size_t kIndex = 0>
void GetBody(size_t index, const uint8_t* p, Mad* mad) {
  if constexpr (kIndex < std::variant_size_v<decltype(Mad::body)>) {
    if (index == kIndex) return Get(p, &mad->body.emplace<kIndex>());
    GetBody<kIndex + 1>(index, p, mad);
  }
}

absl::Status Wrong(absl::string_view field, uint64_t value) {
  return absl::InvalidArgumentError(absl::StrCat("management datagram with ", field, " ", value));
}

// IP CM header (A11.3): version 0.0 | IP version, reserved | source port | source 16 | destination
// 16. An IPv4 address is the last four bytes of its field, behind zeros.
void PutIpHeader(const IpHeader& header, uint8_t* p) {
  const bool ipv4 = header.source.is_ipv4() && header.destination.is_ipv4();
  const size_t skip = ipv4 ? 12 : 0;
  p[1] = ipv4 ? 0x40 : 0x60;
  StoreBig16(p + 2, header.source.port);
  std::copy(header.source.ip.begin() + skip, header.source.ip.end(), p + 4 + skip);
  std::copy(header.destination.ip.begin() + skip, header.destination.ip.end(), p + 20 + skip);
}

absl::StatusOr<IpHeader> GetIpHeader(const uint8_t* p) {
  const uint8_t ip_version = Bits(p[1], 4, 4);
  if (p[0] != 0) return Wrong("IP CM version", p[0]);
  if (ip_version != 4 && ip_version != 6) return Wrong("IP version", ip_version);

  const auto get_ip = [ip_version](const uint8_t* from) {
    std::array<uint8_t, 16> ip{};
    if (ip_version == 4) ip[10] = ip[11] = 0xff;
    const size_t skip = ip_version == 4 ? 12 : 0;
    std::copy(from + skip, from + 16, ip.begin() + skip);
    return ip;
  };
  IpHeader header;
  header.source.port = LoadBig16(p + 2);
  header.source.ip = get_ip(p + 4);
  header.destination.ip = get_ip(p + 20);
  return header;
}

template <size_t kUser>
std::array<uint8_t, kIpHeaderSize + kUser> Join(const IpHeader& header, const std::array<uint8_t, kUser>& user) {
  std::array<uint8_t, kIpHeaderSize + kUser> data{};
  PutIpHeader(header, data.data());
  std::copy(user.begin(), user.end(), data.begin() + kIpHeaderSize);
  return data;
}

template <size_t kUser>
absl::StatusOr<IpHeader> Split(const std::array<uint8_t, kIpHeaderSize + kUser>& data,
                               std::array<uint8_t, kUser>* user) {
  absl::StatusOr<IpHeader> header = GetIpHeader(data.data());
  if (header.ok()) std::copy(data.begin() + kIpHeaderSize, data.end(), user->begin());
  return header;
}

}  // namespace

const char* NameOf(const Mad& mad) { return kNames[mad.body.index()]; }

MadBytes EncodeMad(const Mad& mad) {
  MadBytes bytes{};
  bytes[0] = kBaseVersion;
  bytes[1] = kClassCm;
  bytes[2] = kClassVersion;
  bytes[3] = kMethodSend;
  StoreBig64(&bytes[8], mad.transaction);
  StoreBig16(&bytes[16], static_cast<uint16_t>(kFirstAttribute + mad.body.index()));
  std::visit([&bytes](const auto& body) { Put(body, &bytes[kHeader]); }, mad.body);
  return bytes;
}

absl::StatusOr<Mad> DecodeMad(absl::Span<const uint8_t> bytes) {
  if (bytes.size() != kMadLength) return Wrong("length", bytes.size());
  if (bytes[0] != kBaseVersion) return Wrong("base version", bytes[0]);
  if (bytes[1] != kClassCm) return Wrong("class", bytes[1]);
  if (bytes[2] != kClassVersion) return Wrong("class version", bytes[2]);
  if (bytes[3] != kMethodSend) return Wrong("method", bytes[3]);
  const uint16_t attribute = LoadBig16(&bytes[16]);
  const size_t index = static_cast<size_t>(attribute) - kFirstAttribute;
  if (attribute < kFirstAttribute || index >= std::size(kNames)) return Wrong("attribute", attribute);

  Mad mad;
  mad.transaction = LoadBig64(&bytes[8]);
  GetBody(index, &bytes[kHeader], &mad);
  if (const auto* rej = std::get_if<RejMad>(&mad.body); rej != nullptr && rej->information_length > kRejInformation) {
    return Wrong("information length", rej->information_length);
  }
  if (const auto* rep = std::get_if<SidrRepMad>(&mad.body);
      rep != nullptr && rep->information_length > kSidrRepInformation) {
    return Wrong("information length", rep->information_length);
  }
  return mad;
}

std::optional<ConnectionIds> IdsOf(const Mad& mad) {
  return std::visit(
      [](const auto& body) -> std::optional<ConnectionIds> {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, SidrReqMad> || std::is_same_v<Body, SidrRepMad>) {
          return std::nullopt;
        } else if constexpr (std::is_same_v<Body, ReqMad>) {
          return ConnectionIds{body.local_id, 0};
        } else {
          return ConnectionIds{body.local_id, body.remote_id};
        }
      },
      mad.body);
}

uint64_t ServiceId(PortSpace space, uint16_t port) { return uint64_t{static_cast<uint16_t>(space)} << 16 | port; }

absl::StatusOr<uint16_t> ServicePort(PortSpace space, uint64_t service_id) {
  if (service_id >> 16 != static_cast<uint16_t>(space)) return Wrong("service id", service_id);
  return static_cast<uint16_t>(service_id & 0xffff);
}

std::array<uint8_t, kReqPrivateData> JoinPrivateData(const IpHeader& header, const UserData& user) {
  return Join(header, user);
}

absl::StatusOr<IpHeader> SplitPrivateData(const std::array<uint8_t, kReqPrivateData>& data, UserData* user) {
  return Split(data, user);
}

std::array<uint8_t, kSidrReqPrivateData> JoinPrivateData(const IpHeader& header, const ServiceData& user) {
  return Join(header, user);
}

absl::StatusOr<IpHeader> SplitPrivateData(const std::array<uint8_t, kSidrReqPrivateData>& data, ServiceData* user) {
  return Split(data, user);
}

uint8_t MtuCode(uint32_t mtu) {
  uint8_t code = 1;
  while (code < 5 && MtuOf(code) < mtu) ++code;
  CHECK_EQ(MtuOf(code), mtu);
  return code;
}

uint32_t MtuOf(uint8_t code) { return code >= 1 && code <= 5 ? 128u << code : 0; }

}  // namespace tokamak::verbs::soft
