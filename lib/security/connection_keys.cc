#include "lib/security/connection_keys.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/codec.h"

namespace tokamak::security {
namespace {

Proof ProofOf(const Key& key, const QueuePairFacts& facts) {
  base::Writer writer;
  writer.Integer(facts.queue);
  writer.Integer(facts.attempt);
  writer.Bytes(facts.hello);
  const Key whole = HmacSha256(key.bytes(), {writer.bytes()});
  Proof proof{};
  std::copy_n(whole.bytes().begin(), proof.size(), proof.begin());
  return proof;
}

}  // namespace

ConnectionKeys::ConnectionKeys(Role role, CipherSuite suite, Key exported, const Hash& connection)
    : role_(role), suite_(suite), exported_(std::move(exported)), connection_(connection) {
  own_proofs_ = Derive("proof of a queue pair", role, {});
  peer_proofs_ = Derive("proof of a queue pair", Opposite(role), {});
}

Proof ConnectionKeys::Prove(const QueuePairFacts& facts) const {
  CHECK(facts.queue > 0 && facts.attempt > 0);
  return ProofOf(own_proofs_, facts);
}

absl::Status ConnectionKeys::Check(const QueuePairFacts& facts, absl::Span<const uint8_t> proof) {
  const Proof right = ProofOf(peer_proofs_, facts);
  if (proof.size() != right.size() || CRYPTO_memcmp(proof.data(), right.data(), right.size()) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("queue pair ", facts.queue, " does not prove that it belongs to its connection"));
  }
  uint32_t& last = proven_[facts.queue];
  if (facts.attempt <= last) {
    return absl::AlreadyExistsError(
        absl::StrCat("the proof of queue pair ", facts.queue, " was used before (attempt ", facts.attempt, ")"));
  }
  last = facts.attempt;
  return absl::OkStatus();
}

SealedChannel ConnectionKeys::MakeChannel(uint8_t queue, uint32_t attempt) {
  uint32_t& last = sealed_[queue];
  CHECK_GT(attempt, last) << "two channels with the same keys";
  last = attempt;
  base::Writer context;
  context.Integer(queue);
  context.Integer(attempt);
  CipherState initiator(suite_), responder(suite_);
  initiator.SetKey(Derive("messages", Role::kInitiator, context.bytes()));
  responder.SetKey(Derive("messages", Role::kResponder, context.bytes()));
  return SealedChannel(role_, std::move(initiator), std::move(responder));
}

Key ConnectionKeys::Derive(absl::string_view purpose, Role from, absl::Span<const uint8_t> context) const {
  base::Writer info;
  info.Text("tokamak");
  info.Text(purpose);
  info.Integer(static_cast<uint8_t>(from));
  info.Raw(connection_);
  info.Bytes(context);
  return HkdfExpand(exported_, info.bytes());
}

}  // namespace tokamak::security
