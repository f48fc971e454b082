#include "lib/transport/messages/hello.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/transport/limits.h"
#include "lib/transport/messages/message.h"

namespace tokamak::transport {
namespace {

constexpr uint32_t kMagic = 0x4d4b4f54;  // "TOKM" in memory

// Offsets in bytes.
constexpr size_t kMagicAt = 0, kVersionAt = 4, kQueueAt = 6, kBulkAt = 7, kReadsAt = 8, kImmediateAt = 9, kRailsAt = 10,
                 kPrimaryAt = 11, kSlotSizeAt = 12, kSlotsAt = 16, kTransfersAt = 20, kCallsAt = 24, kFirstSlotsAt = 28,
                 kTokenAt = 32, kSecretAt = 40, kSecurityAt = 48, kNothingAt = 49;
static_assert(kSecretAt + security::SecretId::kSize == kSecurityAt, "the fields follow each other");

// Bulk queue pairs', in the place of slots, transfers and calls.
constexpr size_t kAttemptAt = 12, kProofAt = 16;
static_assert(kProofAt + security::kProofSize == kTokenAt, "the proof ends where the token begins");

enum SecurityBits : uint8_t { kSeals = 1, kAes = 2 };

absl::Status OutOfBounds(const char* what, uint64_t value, uint64_t least, uint64_t most) {
  return absl::InvalidArgumentError(
      absl::StrCat("the peer's hello says ", what, " = ", value, ", possible are ", least, " to ", most));
}

bool Within(uint64_t value, uint64_t least, uint64_t most) { return value >= least && value <= most; }

absl::Status CheckZero(const uint8_t* begin, const uint8_t* end) {
  for (const uint8_t* p = begin; p < end; ++p) {
    if (*p != 0) return OutOfBounds("a byte that is not used", *p, 0, 0);
  }
  return absl::OkStatus();
}

absl::Status DecodeControl(const uint8_t* p, Hello* hello) {
  hello->slot_size = base::LoadLittle<uint32_t>(p + kSlotSizeAt);
  hello->receive_slots = base::LoadLittle<uint32_t>(p + kSlotsAt);
  hello->max_transfers = base::LoadLittle<uint32_t>(p + kTransfersAt);
  hello->max_calls = base::LoadLittle<uint32_t>(p + kCallsAt);
  hello->first_slots = base::LoadLittle<uint32_t>(p + kFirstSlotsAt);
  if (!Within(hello->slot_size, kMinSlotSize, kMaxSlotSize)) {
    return OutOfBounds("slot size", hello->slot_size, kMinSlotSize, kMaxSlotSize);
  }
  if (!Within(hello->receive_slots, kMinReceiveSlots, kMaxReceiveSlots)) {
    return OutOfBounds("receive slots", hello->receive_slots, kMinReceiveSlots, kMaxReceiveSlots);
  }
  if (!Within(hello->first_slots, kMinFirstSlots, hello->receive_slots)) {
    return OutOfBounds("first slots", hello->first_slots, kMinFirstSlots, hello->receive_slots);
  }
  if (hello->max_transfers == 0) return OutOfBounds("transfers", 0, 1, UINT32_MAX);
  if (hello->max_calls == 0) return OutOfBounds("calls", 0, 1, UINT32_MAX);
  std::array<uint8_t, security::SecretId::kSize> secret;
  std::copy_n(p + kSecretAt, secret.size(), secret.begin());
  hello->secret = security::SecretId(secret);
  const uint8_t most = hello->secret == security::SecretId() ? 0 : kSeals | kAes;
  if (p[kSecurityAt] > most) return OutOfBounds("security", p[kSecurityAt], 0, most);
  hello->seals = (p[kSecurityAt] & kSeals) != 0;
  hello->aes = (p[kSecurityAt] & kAes) != 0;
  return CheckZero(p + kNothingAt, p + kHelloSize);
}

absl::Status DecodeBulk(const uint8_t* p, Hello* hello) {
  hello->attempt = base::LoadLittle<uint32_t>(p + kAttemptAt);
  std::copy_n(p + kProofAt, hello->proof.size(), hello->proof.begin());
  return CheckZero(p + kSecretAt, p + kHelloSize);
}

}  // namespace

void EncodeHello(const Hello& hello, absl::Span<uint8_t> out) {
  CHECK_EQ(out.size(), kHelloSize);
  std::fill(out.begin(), out.end(), 0);
  uint8_t* p = out.data();
  base::StoreLittle<uint32_t>(p + kMagicAt, kMagic);
  base::StoreLittle<uint16_t>(p + kVersionAt, hello.version);
  p[kQueueAt] = hello.queue;
  p[kBulkAt] = hello.bulk_queue_pairs;
  p[kReadsAt] = hello.reads_served;
  p[kImmediateAt] = hello.immediate ? 1 : 0;
  p[kRailsAt] = hello.rails;
  p[kPrimaryAt] = hello.primary;
  base::StoreLittle<uint64_t>(p + kTokenAt, hello.token);
  if (hello.queue != 0) {
    base::StoreLittle<uint32_t>(p + kAttemptAt, hello.attempt);
    std::copy(hello.proof.begin(), hello.proof.end(), p + kProofAt);
    return;
  }
  base::StoreLittle<uint32_t>(p + kSlotSizeAt, hello.slot_size);
  base::StoreLittle<uint32_t>(p + kSlotsAt, hello.receive_slots);
  base::StoreLittle<uint32_t>(p + kTransfersAt, hello.max_transfers);
  base::StoreLittle<uint32_t>(p + kCallsAt, hello.max_calls);
  base::StoreLittle<uint32_t>(p + kFirstSlotsAt, hello.first_slots);
  std::copy(hello.secret.bytes().begin(), hello.secret.bytes().end(), p + kSecretAt);
  p[kSecurityAt] = static_cast<uint8_t>((hello.seals ? kSeals : 0) | (hello.aes ? kAes : 0));
}

bool IsHello(absl::Span<const uint8_t> bytes) {
  return bytes.size() >= kVersionAt + 2 && base::LoadLittle<uint32_t>(bytes.data() + kMagicAt) == kMagic;
}

absl::StatusOr<Hello> DecodeHello(absl::Span<const uint8_t> bytes) {
  const uint8_t* p = bytes.data();
  if (!IsHello(bytes)) {
    return absl::FailedPreconditionError(absl::StrCat("the peer is no Tokamak transport (", bytes.size(),
                                                      " bytes of private data); this side is, version ",
                                                      kProtocolVersion));
  }
  Hello hello;
  hello.version = base::LoadLittle<uint16_t>(p + kVersionAt);
  if (hello.version != kProtocolVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the peer speaks transport version ", hello.version, ", this side version ", kProtocolVersion));
  }
  if (bytes.size() < kHelloSize) return OutOfBounds("bytes", bytes.size(), kHelloSize, 256);
  hello.queue = p[kQueueAt];
  hello.bulk_queue_pairs = p[kBulkAt];
  hello.reads_served = p[kReadsAt];
  hello.immediate = p[kImmediateAt] != 0;
  hello.rails = p[kRailsAt];
  hello.primary = p[kPrimaryAt];
  hello.token = base::LoadLittle<uint64_t>(p + kTokenAt);
  if (!Within(hello.bulk_queue_pairs, 1, kMaxBulkQueuePairs)) {
    return OutOfBounds("bulk queue pairs", hello.bulk_queue_pairs, 1, kMaxBulkQueuePairs);
  }
  if (!Within(hello.rails, 1, kMaxRails)) return OutOfBounds("rails", hello.rails, 1, kMaxRails);
  if (hello.primary >= hello.rails) return OutOfBounds("primary rail", hello.primary, 0, hello.rails - 1u);
  const uint32_t queues = uint32_t{hello.rails} * hello.bulk_queue_pairs;
  if (queues > kMaxBulkQueuePairs) return OutOfBounds("queue pairs of all rails", queues, 1, kMaxBulkQueuePairs);
  if (hello.queue > queues) return OutOfBounds("queue pair", hello.queue, 0, queues);
  if (p[kImmediateAt] > 1) return OutOfBounds("immediate", p[kImmediateAt], 0, 1);
  if (hello.reads_served == 0) return OutOfBounds("reads served", 0, 1, 255);
  if (absl::Status s = hello.queue == 0 ? DecodeControl(p, &hello) : DecodeBulk(p, &hello); !s.ok()) return s;
  return hello;
}

}  // namespace tokamak::transport
