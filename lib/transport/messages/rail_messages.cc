#include "lib/transport/messages/rail_messages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/check.h"

namespace tokamak::transport {
namespace {

constexpr size_t kRailSize = 20;    // address 16, port 2, UDP port 2
constexpr size_t kWantedSize = 12;  // transfer 8, shares 4
static_assert(kHeaderSize + kMaxWantedWrites * kWantedSize <= kMinMessage,
              "every control message fits the smallest slot");
static_assert(kHeaderSize + kMaxRails * kRailSize <= kMinMessage, "every control message fits the smallest slot");

absl::Status MalformedRail(const char* what, uint64_t value) {
  return absl::InvalidArgumentError(absl::StrCat("rails with ", what, " ", value));
}

}  // namespace

std::vector<uint8_t> EncodeRails(absl::Span<const verbs::Address> rails) {
  CHECK(rails.size() >= 2 && rails.size() <= kMaxRails);
  std::vector<uint8_t> body(rails.size() * kRailSize);
  uint8_t* out = body.data();
  for (const verbs::Address& rail : rails) {
    std::copy(rail.ip.begin(), rail.ip.end(), out);
    base::StoreLittle<uint16_t>(out + rail.ip.size(), rail.port);
    base::StoreLittle<uint16_t>(out + rail.ip.size() + 2, rail.udp_port);
    out += kRailSize;
  }
  return body;
}

absl::StatusOr<std::vector<verbs::Address>> DecodeRails(absl::Span<const uint8_t> body) {
  const size_t count = body.size() / kRailSize;
  if (body.size() % kRailSize != 0 || count < 2 || count > kMaxRails) return MalformedRail("bytes:", body.size());
  std::vector<verbs::Address> rails(count);
  for (verbs::Address& rail : rails) {
    std::copy_n(body.begin(), rail.ip.size(), rail.ip.begin());
    rail.port = base::LoadLittle<uint16_t>(body.data() + rail.ip.size());
    rail.udp_port = base::LoadLittle<uint16_t>(body.data() + rail.ip.size() + 2);
    if (rail.port == 0) return MalformedRail("port", 0);
    body.remove_prefix(kRailSize);
  }
  return rails;
}

std::vector<uint8_t> EncodeWanted(absl::Span<const WantedWrite> writes) {
  CHECK_LE(writes.size(), kMaxWantedWrites);
  std::vector<uint8_t> body(writes.size() * kWantedSize);
  uint8_t* out = body.data();
  for (const WantedWrite& write : writes) {
    base::StoreLittle<uint64_t>(out, write.transfer);
    base::StoreLittle<uint32_t>(out + 8, write.shares_seen);
    out += kWantedSize;
  }
  return body;
}

absl::StatusOr<std::vector<WantedWrite>> DecodeWanted(absl::Span<const uint8_t> body) {
  const size_t count = body.size() / kWantedSize;
  if (body.size() % kWantedSize != 0 || count > kMaxWantedWrites) return MalformedRail("bytes of writes:", body.size());
  std::vector<WantedWrite> writes(count);
  uint64_t last = 0;
  for (WantedWrite& write : writes) {
    write = {base::LoadLittle<uint64_t>(body.data()), base::LoadLittle<uint32_t>(body.data() + 8)};
    if (write.transfer <= last) return MalformedRail("a write out of order:", write.transfer);
    if (write.shares_seen >= 1u << Note::kMaxShares) return MalformedRail("shares", write.shares_seen);
    last = write.transfer;
    body.remove_prefix(kWantedSize);
  }
  return writes;
}

}  // namespace tokamak::transport
