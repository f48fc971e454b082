// TwoSides is a handshake's both sides with the same secret and facts, unless a test changes them,
// and bytes that are drawn from a seed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/random.h"
#include "lib/security/cluster_secret.h"
#include "lib/security/connection_facts.h"
#include "lib/security/handshake.h"

namespace tokamak::security {

using Bytes = std::vector<uint8_t>;

Bytes Draw(base::Random& random, size_t size);
Bytes BytesOfText(absl::string_view text);
std::string TextOf(absl::Span<const uint8_t> bytes);

// One side's view of a connection, with what Identity looks at.
struct SideOptions {
  CipherSuite suite = CipherSuite::kAesGcm;
  uint16_t version = 10;
  std::string initiator_address = "10.0.0.1:4791";
  std::string responder_address = "10.0.0.2:4791";
  uint32_t initiator_queue_pair = 17;
  uint32_t responder_queue_pair = 23;
  std::string initiator_hello = "what the initiator offers";
  std::string responder_hello = "what the responder takes";
  Bytes secret = Bytes(32, 7);
  std::string payload = "a name";
};

std::unique_ptr<Handshake> MakeSide(Role role, const SideOptions& options, absl::Span<const uint8_t> random,
                                    HandshakeActions* begun);

struct TwoSides {
  explicit TwoSides(uint64_t seed, const SideOptions& ours = {}, const SideOptions& theirs = {});

  // Runs the handshake. Returns whether both sides became established.
  bool Run();

  base::Random random;
  HandshakeActions initiator_begun, responder_begun;  // what each does first
  std::unique_ptr<Handshake> initiator;
  std::unique_ptr<Handshake> responder;
  Bytes first;               // the initiator's first message
  Bytes second, confirming;  // messages of Run
};

// The result of a handshake that nobody disturbed.
struct TwoChannels {
  explicit TwoChannels(CipherSuite suite = CipherSuite::kAesGcm);

  std::optional<SecuredConnection> initiator;
  std::optional<SecuredConnection> responder;
};

// Returns `plain` as the next message of `channel`; with `additional`.
Bytes Sealed(SealedChannel& channel, absl::string_view plain, absl::string_view additional = "");

}  // namespace tokamak::security
