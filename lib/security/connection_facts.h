// ConnectionFacts is what both sides of a connection know of it before its handshake, and have to
// know alike: the prologue of the handshake (Noise Protocol Framework, revision 34, section 6).
//
// Each side fills them in with what it sees itself, never with what the peer says about itself in
// the handshake. If somebody between two nodes changes an address, a queue pair's number or an
// offer, the two prologues differ and neither side finishes: a splice or a downgrade is noticed.
// Since the two halves are named by role, a message that is sent back to its sender, in another
// connection, has another prologue there, too.
//
// Thread rule: a plain value.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "lib/security/cipher_suite.h"
#include "lib/security/cluster_secret.h"

namespace tokamak::security {

struct ConnectionFacts {
  // One half. The bytes it looks at have to live until Prologue has returned.
  struct Half {
    absl::Span<const uint8_t> address;  // as the transport encodes it, with its port
    uint32_t queue_pair = 0;            // the number of its control queue pair
    absl::Span<const uint8_t> hello;    // as it was sent and received, byte for byte
  };

  uint16_t protocol_version = 0;  // of the transport
  CipherSuite suite = CipherSuite::kAesGcm;
  SecretId secret;  // the one that the initiator named
  Half initiator;
  Half responder;

  // Returns the bytes that both sides mix in first. Different facts have different ones.
  std::vector<uint8_t> Prologue() const;
};

}  // namespace tokamak::security
