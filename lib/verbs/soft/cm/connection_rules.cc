#include "lib/verbs/soft/cm/connection_rules.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint16_t kPkeyMembership = 0x8000;
constexpr uint8_t kReliableConnected = 0;

// No connection has this queue pair.
constexpr uint32_t kNoQueuePair = 0;

bool IsMulticastOrBroadcast(const Address& address) {
  return address.is_multicast() || (address.is_ipv4() && address.ip[12] >= 0xf0);
}

}  // namespace

Address DeviceAt(const Address& address, const Address& own) {
  const uint16_t own_udp_port = own.udp_port == 0 ? kRoceUdpPort : own.udp_port;
  Address device = address;
  device.port = 0;
  if (device.udp_port == own_udp_port) device.udp_port = 0;
  return device;
}

absl::Status CheckPeer(const Address& peer, const Address& own) {
  const bool names_one = !peer.is_unspecified() && !IsMulticastOrBroadcast(peer);
  if (peer.port != 0 && names_one && peer.is_ipv4() == own.is_ipv4()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot connect to ", peer.ToString(), " from ", own.ToString(),
                   ": the address of one device, of the same family, and a port are needed"));
}

bool IsDefaultPkey(uint16_t pkey) { return (pkey | kPkeyMembership) == 0xffff; }

ReqMad MakeReq(const ConnectionOffer& offer, const Address& local, const Address& peer, uint64_t ca_guid,
               uint32_t local_id) {
  ReqMad req;
  req.local_id = local_id;
  req.service_id = ServiceId(PortSpace::kTcp, peer.port);
  req.ca_guid = ca_guid;
  req.queue_pair = offer.queue_pair;
  req.responder_resources = offer.reliability.reads_served;
  req.initiator_depth = offer.reliability.reads_outstanding;
  req.remote_cm_timeout = kCmTimeoutCode;
  req.starting_psn = offer.receive_psn;
  req.local_cm_timeout = kCmTimeoutCode;
  req.retry_count = offer.reliability.retry_count;
  req.mtu_code = MtuCode(offer.max_path_mtu);
  req.rnr_retry_count = offer.reliability.rnr_retry_count;
  req.max_cm_retries = kMaxCmRetries;
  req.local_gid = local.ip;
  req.remote_gid = peer.ip;
  req.local_ack_timeout = AckTimeoutCode(offer.reliability.ack_timeout);
  UserData user;
  std::copy_n(offer.private_data.begin(), user.size(), user.begin());
  req.private_data = JoinPrivateData({local, peer}, user);
  return req;
}

RepMad MakeRep(const ConnectionOffer& offer, const ReqMad& req, uint64_t ca_guid, uint32_t local_id) {
  RepMad rep;
  rep.local_id = local_id;
  rep.remote_id = req.local_id;
  rep.queue_pair = offer.queue_pair;
  rep.starting_psn = offer.receive_psn;
  rep.responder_resources = offer.reliability.reads_served;
  rep.initiator_depth = offer.reliability.reads_outstanding;
  rep.rnr_retry_count = offer.reliability.rnr_retry_count;
  rep.ca_guid = ca_guid;
  std::copy(offer.private_data.begin(), offer.private_data.end(), rep.private_data.begin());
  return rep;
}

void AgreeOnReads(uint8_t peer_responder_resources, uint8_t peer_initiator_depth, ReliabilityOptions* reliability) {
  reliability->reads_outstanding = std::min(reliability->reads_outstanding, peer_responder_resources);
  reliability->reads_served = std::min(reliability->reads_served, peer_initiator_depth);
}

RejMad MakeRej(const ReqMad& req, RejectReason reason) {
  RejMad rej;
  rej.remote_id = req.local_id;
  rej.reason = reason;
  return rej;
}

RejMad MakeMtuRej(const ReqMad& req, uint32_t max_mtu) {
  RejMad rej = MakeRej(req, RejectReason::kInvalidMtu);
  rej.information_length = 1;
  rej.information[0] = MtuCode(max_mtu);
  return rej;
}

std::optional<RejMad> Refuse(const ReqMad& req, const Address& local, const Address& sender, uint32_t max_mtu) {
  if (req.local_id == 0) return MakeRej(req, RejectReason::kInvalidCommunicationId);
  if (req.transport_type != kReliableConnected) return MakeRej(req, RejectReason::kInvalidTransportType);
  if (!ServicePort(PortSpace::kTcp, req.service_id).ok()) return MakeRej(req, RejectReason::kInvalidServiceId);
  if (!IsDefaultPkey(req.pkey) || req.remote_gid != local.ip) {
    RejMad rej = MakeRej(req, RejectReason::kInvalidGid);
    rej.information_length = static_cast<uint8_t>(local.ip.size());
    std::copy(local.ip.begin(), local.ip.end(), rej.information.begin());
    return rej;
  }
  // Data goes to the REQ's sender, so the REQ may not name somebody else.
  if (req.local_gid != sender.ip || IsMulticastOrBroadcast(sender)) return MakeRej(req, RejectReason::kConsumer);
  UserData user;
  if (!SplitPrivateData(req.private_data, &user).ok()) return MakeRej(req, RejectReason::kConsumer);
  if (req.queue_pair <= 1) return MakeRej(req, RejectReason::kUnsupportedRequest);
  if (MtuOf(req.mtu_code) == 0 || MtuOf(req.mtu_code) > max_mtu) return MakeMtuRej(req, max_mtu);
  return std::nullopt;
}

DreqMad MakeQuestion(uint32_t local_id, uint32_t remote_id) { return {local_id, remote_id, kNoQueuePair}; }

bool IsQuestion(const DreqMad& dreq) { return dreq.remote_queue_pair == kNoQueuePair; }

Mad MakeCookie(const ReqMad& req, uint64_t cookie) {
  // The local ID names nothing. It is not 0: the kernel would take that for a question about its
  // own request, and ignore it.
  return {cookie, MakeQuestion(static_cast<uint32_t>(cookie) | 1, req.local_id)};
}

uint32_t SmallerMtu(const RejMad& rej, uint32_t asked) {
  if (rej.reason != RejectReason::kInvalidMtu || rej.information_length < 1) return 0;
  const uint32_t offered = MtuOf(rej.information[0]);
  return offered < asked ? offered : 0;
}

absl::Status StatusOf(const RejMad& rej, const Address& peer) {
  const std::string who = peer.ToString();
  switch (rej.reason) {
    case RejectReason::kInvalidServiceId:
      return absl::UnavailableError(
          absl::StrCat("nobody listens at ", who, ": start the service, or check the address and the port"));
    case RejectReason::kConsumer:
      return absl::PermissionDeniedError(absl::StrCat("the service at ", who, " refused the connection"));
    case RejectReason::kNoQueuePair:
    case RejectReason::kNoResources:
    case RejectReason::kInsufficientResponderResources:
      return absl::ResourceExhaustedError(
          absl::StrCat(who, " has no room for another connection now: try again later"));
    case RejectReason::kTimeout:
      return absl::DeadlineExceededError(absl::StrCat(who, " gave up waiting for an answer"));
    case RejectReason::kStaleConnection:
      return absl::AbortedError(
          absl::StrCat(who, " still had an old connection with the same number, which ends now: try again"));
    case RejectReason::kInvalidCommunicationId:
      return absl::AbortedError(
          absl::StrCat(who, " knows nothing of this connection (any more): it gave up, or was restarted"));
    case RejectReason::kInvalidGid:
      return absl::InvalidArgumentError(absl::StrCat(who,
                                                     " is not the address of the device that got the request, or the "
                                                     "partition differs: check the peer's address"));
    case RejectReason::kInvalidMtu:
      return absl::InvalidArgumentError(
          absl::StrCat(who, " takes no path MTU that was tried: lower max_path_mtu or the MTU of this port"));
    case RejectReason::kInvalidTransportType:
    case RejectReason::kUnsupportedRequest:
    case RejectReason::kInvalidClassVersion:
      return absl::UnimplementedError(
          absl::StrCat(who, " does not support this kind of connection (reason ", static_cast<int>(rej.reason), ")"));
  }
  return absl::UnknownError(absl::StrCat(who, " rejected the connection with reason ", static_cast<int>(rej.reason)));
}

std::optional<Mad> AnswerForUnknown(const Mad& mad) {
  if (const auto* dreq = std::get_if<DreqMad>(&mad.body)) {
    return Mad{mad.transaction, DrepMad{dreq->remote_id, dreq->local_id}};
  }
  RejMad rej;
  rej.reason = RejectReason::kInvalidCommunicationId;
  if (const auto* rep = std::get_if<RepMad>(&mad.body)) {
    rej.local_id = rep->remote_id;
    rej.remote_id = rep->local_id;
    rej.rejects = MadKind::kRep;
  } else if (const auto* rtu = std::get_if<RtuMad>(&mad.body)) {
    rej.local_id = rtu->remote_id;
    rej.remote_id = rtu->local_id;
    rej.rejects = MadKind::kOther;
  } else {
    return std::nullopt;
  }
  return Mad{mad.transaction, rej};
}

base::Duration RepeatDelay(int repeats, base::Duration deadline) {
  const base::Duration first = AckTimeout(kCmTimeoutCode);
  const base::Duration most = std::max(first * 4, deadline / 8);
  base::Duration delay = first;
  for (int i = 0; i < repeats && delay < most; ++i) delay = delay * 2;
  return std::min(delay, most);
}

}  // namespace tokamak::verbs::soft
