// ConnectionKeys has the further keys of one connection: those by which its bulk queue pairs and
// rails prove that they belong to it, and those of messages that are sealed on them.
//
// A proof is an HMAC-SHA256 (RFC 2104), cut to 16 bytes, of the queue pair's hello, under a key for
// each direction. So it is of no use to who overhears it: it fits no other queue pair, cannot be
// sent back, and is taken once, since `attempt` has to grow. All keys are expanded (HKDF, RFC 5869,
// section 2.3) from one that the handshake exports, with labels.
//
// Numbers and addresses are not in it: the prover does not know the peer's yet. Who is on the path
// between both can have the queue pair end at himself, and gets no more from it than from the path:
// the keys of memory travel in sealed messages.
//
// Law: `attempt` is never used twice by one side for one queue; the transport counts it. One owner,
// one thread. Keys are wiped with the object.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/security/cipher_suite.h"
#include "lib/security/digest.h"
#include "lib/security/role.h"
#include "lib/security/sealed_channel.h"
#include "lib/security/secret_bytes.h"

namespace tokamak::security {

constexpr size_t kProofSize = 16;  // bytes: beside a hello of 40 it fits into the 56 of IP connection management
using Proof = std::array<uint8_t, kProofSize>;

// A further queue pair of a connection.
struct QueuePairFacts {
  uint8_t queue = 0;                // its number in the connection, from 1
  uint32_t attempt = 0;             // of connecting this queue, from 1
  absl::Span<const uint8_t> hello;  // the prover's, with zeros for the proof
};

class ConnectionKeys final {
 public:
  // `exported`: NoiseHandshake::Export. `connection`: the handshake's hash, which names it.
  ConnectionKeys(Role role, CipherSuite suite, Key exported, const Hash& connection);

  // Returns this side's proof.
  Proof Prove(const QueuePairFacts& facts) const;

  // Looks at the peer's. kPermissionDenied: it is another's, or about other facts; nothing has
  // changed. kAlreadyExists: it is right, and this attempt or a later one of the queue was proven
  // before.
  absl::Status Check(const QueuePairFacts& facts, absl::Span<const uint8_t> proof);

  // Returns the channel of messages that are sealed on a further queue pair. Attempts of a queue
  // grow from call to call: another channel with the same names would use the same keys again.
  SealedChannel MakeChannel(uint8_t queue, uint32_t attempt);

 private:
  Key Derive(absl::string_view purpose, Role from, absl::Span<const uint8_t> context) const;

  Role role_;
  CipherSuite suite_;
  Key exported_;
  Hash connection_;
  Key own_proofs_;
  Key peer_proofs_;
  // The last attempt of each queue.
  std::map<uint8_t, uint32_t> proven_;  // by the peer
  std::map<uint8_t, uint32_t> sealed_;  // that has a channel
};

}  // namespace tokamak::security
