#include "lib/transport/peer_handshake.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/security/connection_facts.h"
#include "lib/security/secret_bytes.h"

namespace tokamak::transport {
namespace {

static_assert(security::kHandshakeTime == kConnectDeadline, "as long as the connection itself may take");
static_assert(security::kMaxHandshakeMessage <= kMinSlotSize, "it fits the smallest slot");

bool IsAuthenticated(const Hello& hello) { return hello.secret != security::SecretId(); }

constexpr size_t kAddressSize = std::tuple_size<decltype(verbs::Address::ip)>::value + sizeof(uint16_t);
using AddressBytes = std::array<uint8_t, kAddressSize>;

AddressBytes BytesOf(const verbs::Address& address, uint16_t port) {
  AddressBytes bytes;
  std::copy(address.ip.begin(), address.ip.end(), bytes.begin());
  base::StoreLittle<uint16_t>(bytes.data() + address.ip.size(), port);
  return bytes;
}

std::vector<uint8_t> PrologueOf(const PeerHandshake::End& initiator, const PeerHandshake::End& responder,
                                security::CipherSuite suite) {
  const AddressBytes from = BytesOf(initiator.address, 0);
  const AddressBytes to = BytesOf(responder.address, responder.address.port);
  std::array<uint8_t, kHelloSize> asked, answered;
  EncodeHello(initiator.hello, absl::MakeSpan(asked));
  EncodeHello(responder.hello, absl::MakeSpan(answered));
  // Where the network has no numbers, neither side knows the other's.
  const bool numbers = initiator.queue_pair != 0 && responder.queue_pair != 0;
  security::ConnectionFacts facts;
  facts.protocol_version = kProtocolVersion;
  facts.suite = suite;
  facts.secret = initiator.hello.secret;
  facts.initiator = {from, numbers ? initiator.queue_pair : 0, asked};
  facts.responder = {to, numbers ? responder.queue_pair : 0, answered};
  return facts.Prologue();
}

}  // namespace

absl::Status PeerHandshake::FindSecret(const PeerSecurity& security, const Hello& theirs,
                                       const security::ClusterSecret** secret) {
  *secret = nullptr;
  if (security.secrets == nullptr) {
    if (!IsAuthenticated(theirs)) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat("the peer has a cluster secret (", theirs.secret.ToString(),
                     ") and this node has none: give this node the same file (--secret-file)"));
  }
  if (!IsAuthenticated(theirs)) {
    return absl::PermissionDeniedError(absl::StrCat("the peer has no cluster secret, and this node has ",
                                                    security.secrets->first().id().ToString(),
                                                    ": give the peer the same file (--secret-file)"));
  }
  const auto found = security.secrets->Find(theirs.secret);
  if (!found.ok()) return found.status();
  *secret = *found;
  return absl::OkStatus();
}

void PeerHandshake::Offer(const PeerSecurity& security, Hello* hello) {
  if (security.secrets == nullptr) return;
  hello->secret = security.secrets->first().id();
  hello->seals = security.seals;
  hello->aes = security.aes;
}

void PeerHandshake::Answer(const PeerSecurity& security, const Hello& asked, Hello* hello) {
  if (!IsAuthenticated(asked)) return;
  hello->secret = asked.secret;
  hello->seals = asked.seals || security.seals;
  hello->aes = asked.aes && security.aes;
}

absl::Status PeerHandshake::CheckAnswer(const Hello& mine, const Hello& theirs) {
  if (theirs.secret == mine.secret && (theirs.seals || !mine.seals) && (mine.aes || !theirs.aes)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the peer's hello answers another offer of security");
}

PeerHandshake::PeerHandshake(Context& context, ControlChannel& control, security::Role role, const End& initiator,
                             const End& responder, const security::ClusterSecret& secret, User& user)
    : context_(context), control_(control), user_(user) {
  const auto suite = responder.hello.aes ? security::CipherSuite::kAesGcm : security::CipherSuite::kChaChaPoly;
  const std::vector<uint8_t> prologue = PrologueOf(initiator, responder, suite);
  security::SecretBytes<32> random;
  context.options.security.draw(random.writable());
  security::Handshake::Identity identity;
  identity.role = role;
  identity.suite = suite;
  identity.prologue = prologue;
  identity.secret = &secret;
  identity.random = random.bytes();
  handshake_.emplace(identity, &first_);
}

absl::Status PeerHandshake::Start() { return CarryOut(std::exchange(first_, {})); }

void PeerHandshake::OnMessage(uint32_t slot, uint32_t byte_count) {
  const auto message = control_.OnHandshake(slot, byte_count);
  if (!message.ok()) return Conclude(message.status());
  security::HandshakeActions actions = handshake_->OnMessage(*message);
  control_.Release(slot);
  absl::Status status = control_.Repost();
  if (status.ok()) status = CarryOut(actions);
  if (!status.ok()) return Conclude(status);
  if (actions.end.has_value()) Conclude(*actions.end);
}

absl::Status PeerHandshake::CarryOut(const security::HandshakeActions& actions) {
  if (actions.stop_timer) limit_.Cancel();
  if (actions.limit_after.has_value()) {
    limit_ = context_.loop.RunAfter(*actions.limit_after, [this] {
      const security::HandshakeActions late = handshake_->OnLimit();
      if (late.end.has_value()) Conclude(*late.end);
    });
  }
  return actions.send.empty() ? absl::OkStatus() : control_.SendHandshake(actions.send);
}

// May drop us.
void PeerHandshake::Conclude(const absl::Status& end) {
  limit_.Cancel();
  if (end.ok()) {
    user_.OnProven(handshake_->Take());
  } else {
    user_.OnRefused(end);
  }
}

}  // namespace tokamak::transport
