// PeerHandshake is the handshake of one connection (security/handshake.h) over its control queue
// pair: it says what both sides see of the connection, carries the messages, and keeps the time.
//
// Both sides see alike, if nobody changes it between them: the hellos, the addresses, and the
// numbers of the two control queue pairs as the network has them. (iWARP has none.) The service's
// port counts as it was asked for; that of who asks does not, for it differs from one to the other
// connection manager.
//
// Law: the user hears of the end once, and nothing afterwards; it may drop us then.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/security/handshake.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/channels/control_channel.h"
#include "lib/transport/messages/hello.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

class PeerHandshake final {
 public:
  class User {
   public:
    virtual ~User() = default;
    virtual void OnProven(security::SecuredConnection secured) = 0;
    // The peer does not belong to the cluster, or somebody between us changes its words; or it is
    // silent.
    virtual void OnRefused(const absl::Status& why) = 0;
  };

  // One side, as this side sees it.
  struct End {
    verbs::Address address;  // of who is asked: with its port
    uint32_t queue_pair = 0;
    Hello hello;
  };

  // Returns the secret that a peer's hello asks for, or whether it may do without one.
  // kPermissionDenied: it is none of ours; the text says what to do. `*secret` is null where
  // peers are not authenticated.
  static absl::Status FindSecret(const PeerSecurity& security, const Hello& theirs,
                                 const security::ClusterSecret** secret);
  // Fills in what a hello says of security: what we offer, and what the answer to an offer is.
  static void Offer(const PeerSecurity& security, Hello* hello);
  static void Answer(const PeerSecurity& security, const Hello& asked, Hello* hello);
  // kInvalidArgument: it does not answer what `mine` offered.
  static absl::Status CheckAnswer(const Hello& mine, const Hello& theirs);

  // The queue pair is ReadyToSend. `initiator` asked for the connection; we are `role`.
  PeerHandshake(Context& context, ControlChannel& control, security::Role role, const End& initiator,
                const End& responder, const security::ClusterSecret& secret, User& user);

  // Sends the first message, if it is ours. Errors: the device's; the user is not called.
  absl::Status Start();
  // The control queue pair received one.
  void OnMessage(uint32_t slot, uint32_t byte_count);

 private:
  absl::Status CarryOut(const security::HandshakeActions& actions);
  void Conclude(const absl::Status& end);

  Context& context_;
  ControlChannel& control_;
  User& user_;
  security::HandshakeActions first_;
  std::optional<security::Handshake> handshake_;
  base::Timer limit_;
};

}  // namespace tokamak::transport
