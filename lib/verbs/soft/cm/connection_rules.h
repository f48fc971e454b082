// What the two sides of a connection may ask of each other, and what it means when one says no.
//
// A REQ comes from anybody, so it is checked here before it costs anything. What both sides agree
// on is the smaller of what they offer; only the path MTU is the REQ's alone, since a REP cannot
// lower it: a REQ that asks for too much is rejected with the MTU that would do, and its sender
// asks again with that.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// The time that a manager has to answer (134 ms), told in each REQ; the first repetition comes
// after it.
constexpr uint8_t kCmTimeoutCode = 15;
constexpr uint8_t kMaxCmRetries = 15;

// The device at the IP address and UDP port of `address`, as one of a network with `own` is written:
// a udp_port that is that one's too is 0, and so is the service's port.
Address DeviceAt(const Address& address, const Address& own);

// kInvalidArgument unless `peer` can be asked by the device `own`: a port at the address of one
// device, of its family. Others may have said where a peer is: what they name may be a group.
absl::Status CheckPeer(const Address& peer, const Address& own);

// The default partition, the only one here, as a full or a limited member.
bool IsDefaultPkey(uint16_t pkey);

// What one side brings to a connection.
struct ConnectionOffer {
  uint32_t queue_pair = 0;
  uint32_t receive_psn = 0;  // the first PSN that we want to be sent
  uint32_t max_path_mtu = kMaxMtu;
  ReliabilityOptions reliability;
  base::Duration deadline = base::Seconds(5);
  AnyData private_data{};  // a REQ's: the first 56 bytes
  // Who asks walks its queue pair by itself, and says when (ConnectionState::Confirm): before that
  // the peer does not hear that its answer came.
  bool confirms = false;
};

// The REQ that makes `offer` to `peer` (address and service port); `local` has our address and a
// port to be seen as.
ReqMad MakeReq(const ConnectionOffer& offer, const Address& local, const Address& peer, uint64_t ca_guid,
               uint32_t local_id);

// The REP that answers `req` with `offer`, its READ depths already agreed on.
RepMad MakeRep(const ConnectionOffer& offer, const ReqMad& req, uint64_t ca_guid, uint32_t local_id);

// Lowers the offer's READ depths to what the peer serves and asks for, as its REQ or REP says.
void AgreeOnReads(uint8_t peer_responder_resources, uint8_t peer_initiator_depth, ReliabilityOptions* reliability);

// Why a REQ that came from `sender` to `local` cannot become a connection, as the REJ to answer
// (without local ID), or nothing. Whether anybody listens is another question.
std::optional<RejMad> Refuse(const ReqMad& req, const Address& local, const Address& sender, uint32_t max_mtu);

// A REJ of `req`, to which the caller may add.
RejMad MakeRej(const ReqMad& req, RejectReason reason);
RejMad MakeMtuRej(const ReqMad& req, uint32_t max_mtu);

// A question: a DREQ of a queue pair that no connection has. Whoever knows the connection that it names
// ignores it, all others answer with a DREP and the same transaction, the kernel's manager as well.
DreqMad MakeQuestion(uint32_t local_id, uint32_t remote_id);
bool IsQuestion(const DreqMad& dreq);

// The question to the sender of `req`, for which there is no room, whether it is at its address. The
// transaction is a cookie: our managers ask for the connection again with it, at once; others answer
// by a DREP, since they know no such connection, and repeat the request in their time.
Mad MakeCookie(const ReqMad& req, uint64_t cookie);

// The MTU to ask for after a REJ for too large an MTU: smaller than `asked`, or 0 when there is
// none to try.
uint32_t SmallerMtu(const RejMad& rej, uint32_t asked);

// What a REJ from `peer` means to the application, and what may be done about it.
absl::Status StatusOf(const RejMad& rej, const Address& peer);

// The answer to a message about a connection that we do not know, or that is over: whoever believes
// in it shall learn. To a REP and RTU a REJ, to a DREQ a DREP, nothing to others, so that two
// managers never answer each other for ever.
std::optional<Mad> AnswerForUnknown(const Mad& mad);

// How long to wait for an answer before the message is sent once more, `repeats` having been:
// doubles from the CM time-out up to an eighth of the deadline (but at least to four CM time-outs),
// so that kMaxCmRetries last for usual deadlines.
base::Duration RepeatDelay(int repeats, base::Duration deadline);

}  // namespace tokamak::verbs::soft
