// The rules of a connection: what its two sides may ask of each other, and what a refusal means.
//
// Anybody can send a REQ, so it is checked before it costs anything. The sides agree on the smaller
// of their offers, except for the path MTU, which a REP cannot lower: a REQ for too much is
// rejected with the MTU that would do, and asked again with that.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/cm/mad.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// The remote CM response time-out in each REQ: 134 ms.
constexpr uint8_t kCmTimeoutCode = 15;
constexpr uint8_t kMaxCmRetries = 15;

// Returns the device of `address`, in canonical form: port 0, and udp_port 0 if equal to `own`'s.
Address DeviceAt(const Address& address, const Address& own);

// kInvalidArgument unless `peer` is a port at a unicast address of `own`'s family.
absl::Status CheckPeer(const Address& peer, const Address& own);

// Returns true for the default partition, full or limited member; there is no other here.
bool IsDefaultPkey(uint16_t pkey);

struct ConnectionOffer {
  uint32_t queue_pair = 0;
  uint32_t receive_psn = 0;  // the first PSN that we expect
  uint32_t max_path_mtu = kMaxMtu;
  ReliabilityOptions reliability;
  base::Duration deadline = base::Seconds(5);
  AnyData private_data{};
  // True if the asker walks its queue pair itself: the RTU waits for ConnectionState::Confirm.
  bool confirms = false;
};

// Returns the REQ of `offer` to `peer` (address and service port); `local` is our address, with the
// port that the peer sees.
ReqMad MakeReq(const ConnectionOffer& offer, const Address& local, const Address& peer, uint64_t ca_guid,
               uint32_t local_id);

// Returns the REP that answers `req` with `offer`, whose READ depths are agreed on.
RepMad MakeRep(const ConnectionOffer& offer, const ReqMad& req, uint64_t ca_guid, uint32_t local_id);

// Lowers the offer's READ depths to those of the peer's REQ or REP.
void AgreeOnReads(uint8_t peer_responder_resources, uint8_t peer_initiator_depth, ReliabilityOptions* reliability);

// Returns the REJ (without local ID) for a REQ from `sender` to `local` that cannot become a
// connection, or nothing. Listeners are not checked.
std::optional<RejMad> Refuse(const ReqMad& req, const Address& local, const Address& sender, uint32_t max_mtu);

// Returns a REJ of `req`, to which the caller may add.
RejMad MakeRej(const ReqMad& req, RejectReason reason);
RejMad MakeMtuRej(const ReqMad& req, uint32_t max_mtu);

// Returns a DREQ of a queue pair that no connection has. A manager that knows the connection
// ignores it; all others, the kernel's too, answer with a DREP of the same transaction.
DreqMad MakeQuestion(uint32_t local_id, uint32_t remote_id);
bool IsQuestion(const DreqMad& dreq);

// Returns the question whether the sender of `req`, for which there is no room, is at its address.
// The transaction is a cookie: our managers ask again with it at once; others answer with a DREP
// and repeat the REQ in their time.
Mad MakeCookie(const ReqMad& req, uint64_t cookie);

// Returns the MTU to ask for after an MTU REJ: smaller than `asked`, or 0.
uint32_t SmallerMtu(const RejMad& rej, uint32_t asked);

// Returns the error for the application, with a remedy.
absl::Status StatusOf(const RejMad& rej, const Address& peer);

// Returns the answer to a message about an unknown or ended connection: a REJ for a REP or RTU, a
// DREP for a DREQ, nothing for others, so that two managers never answer each other for ever.
std::optional<Mad> AnswerForUnknown(const Mad& mad);

// Returns the wait for an answer after `repeats` repetitions: it doubles from the CM time-out up to
// an eighth of the deadline, or to four CM time-outs if that is more, so that kMaxCmRetries last
// for usual deadlines.
base::Duration RepeatDelay(int repeats, base::Duration deadline);

}  // namespace tokamak::verbs::soft
