#include "lib/verbs/soft/packets/icrc.h"

#include <isa-l/crc.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstring>

#include "lib/base/bytes.h"
#include "lib/base/check.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kOnes = 8;
constexpr uint32_t kIpv4HeaderBytes = 20;
constexpr uint32_t kIpv6Header = 40;
constexpr uint32_t kUdpHeader = 8;
constexpr uint16_t kIpv4DontFragment = 0x4000;

constexpr uint32_t kIpv4TotalLength = kOnes + 2;
constexpr uint32_t kIpv4Identification = kOnes + 4;
constexpr uint32_t kIpv6PayloadLength = kOnes + 4;

// ISA-L leaves the upper halves of wide vector registers in use. Code for narrow ones, such as
// ours, then pays for saving and restoring them: more than the CRC of a packet costs.
#if defined(__x86_64__)
const bool kHasWideRegisters = __builtin_cpu_supports("avx");
__attribute__((target("avx"))) void ClearWideRegisters() { _mm256_zeroupper(); }
void ClearUpperHalves() {
  if (kHasWideRegisters) ClearWideRegisters();
}
#else
void ClearUpperHalves() {}
#endif

// Masked fields hold ones.
uint32_t FillIpv4(const Address& source, const Address& destination, bool dont_fragment, uint8_t* ip) {
  ip[0] = 0x45;
  ip[1] = 0xff;                 // type of service
  base::StoreBig16(ip + 2, 0);  // total length: by packet
  base::StoreBig16(ip + 4, 0);  // identification: by packet
  base::StoreBig16(ip + 6, dont_fragment ? kIpv4DontFragment : 0);
  ip[8] = 0xff;                       // time to live
  ip[9] = 17;                         // UDP
  base::StoreBig16(ip + 10, 0xffff);  // header checksum
  std::memcpy(ip + 12, &source.ip[12], 4);
  std::memcpy(ip + 16, &destination.ip[12], 4);
  return kIpv4HeaderBytes;
}

uint32_t FillIpv6(const Address& source, const Address& destination, uint8_t* ip) {
  base::StoreBig32(ip, 0x6fffffff);  // traffic class and flow label
  base::StoreBig16(ip + 4, 0);       // payload length: by packet
  ip[6] = 17;                        // UDP
  ip[7] = 0xff;                      // hop limit
  std::memcpy(ip + 8, source.ip.data(), 16);
  std::memcpy(ip + 24, destination.ip.data(), 16);
  return kIpv6Header;
}

}  // namespace

IcrcFlow::IcrcFlow(const Address& source, const Address& destination, bool dont_fragment)
    : is_ipv4_(destination.is_ipv4()) {
  static_assert(kMaxPrefixLength == kOnes + kIpv6Header + kUdpHeader);
  std::memset(prefix_.data(), 0xff, kOnes);
  uint8_t* ip = prefix_.data() + kOnes;
  uint8_t* udp = ip + (is_ipv4_ ? FillIpv4(source, destination, dont_fragment, ip) : FillIpv6(source, destination, ip));
  base::StoreBig16(udp, source.port);
  base::StoreBig16(udp + 2, destination.port);
  base::StoreBig16(udp + 4, 0);       // length: by packet
  base::StoreBig16(udp + 6, 0xffff);  // checksum
  prefix_length_ = static_cast<uint32_t>(udp + kUdpHeader - prefix_.data());
}

uint32_t IcrcFlow::Start(uint16_t identification, absl::Span<const uint8_t> headers, uint32_t datagram_length) const {
  uint8_t bytes[kMaxPrefixLength + kMaxHeaderLength];
  std::memcpy(bytes, prefix_.data(), kMaxPrefixLength);
  const auto udp_length = static_cast<uint16_t>(kUdpHeader + datagram_length);
  if (is_ipv4_) {
    base::StoreBig16(bytes + kIpv4TotalLength, static_cast<uint16_t>(kIpv4HeaderBytes + udp_length));
    base::StoreBig16(bytes + kIpv4Identification, identification);
  } else {
    base::StoreBig16(bytes + kIpv6PayloadLength, udp_length);
  }
  base::StoreBig16(bytes + prefix_length_ - 4, udp_length);
  CHECK(headers.size() >= kBthLength && headers.size() <= kMaxHeaderLength);
  std::memcpy(bytes + prefix_length_, headers.data(), headers.size());
  bytes[prefix_length_ + kBthMaskedByte] = 0xff;
  return Extend(0, bytes, prefix_length_ + headers.size());
}

uint32_t IcrcFlow::Extend(uint32_t crc, const uint8_t* bytes, uint64_t length) {
  if (length == 0) return crc;
  const uint32_t extended = crc32_gzip_refl(crc, bytes, length);
  ClearUpperHalves();
  return extended;
}

uint32_t IcrcFlow::OfDatagram(uint16_t identification, absl::Span<const uint8_t> datagram) const {
  const absl::Span<const uint8_t> covered = datagram.first(datagram.size() - kIcrcLength);
  const absl::Span<const uint8_t> head = covered.subspan(0, kBthLength);
  const uint32_t crc = Start(identification, head, static_cast<uint32_t>(datagram.size()));
  return Extend(crc, covered.data() + head.size(), covered.size() - head.size());
}

std::optional<uint16_t> IdentificationSolver::Solve(uint16_t assumed, uint32_t computed, uint32_t received,
                                                    uint32_t datagram_length) {
  if (datagram_length < kMinDatagram || datagram_length > kMaxDatagram) return std::nullopt;
  Columns& columns = cache_[datagram_length / 4 % cache_.size()];
  if (columns.datagram_length != datagram_length) columns = Eliminate(datagram_length);
  uint32_t difference = computed ^ received;
  uint16_t identification = assumed;
  for (uint32_t i = 0; i < kBits; ++i) {
    if ((difference >> columns.pivot[i] & 1) == 0) continue;
    difference ^= columns.column[i];
    identification ^= columns.identification[i];
  }
  if (difference != 0) return std::nullopt;
  return identification;
}

IdentificationSolver::Columns IdentificationSolver::Eliminate(uint32_t datagram_length) {
  static constexpr uint8_t kZeros[kMaxDatagram + kIpv4HeaderBytes + kUdpHeader] = {};
  const uint64_t after =
      kIpv4HeaderBytes - 6 + kUdpHeader + datagram_length - kIcrcLength;  // bytes behind the identification

  Columns columns;
  columns.datagram_length = datagram_length;
  const uint8_t none[2] = {0, 0};
  const uint32_t base = IcrcFlow::Extend(IcrcFlow::Extend(0, none, 2), kZeros, after);
  for (uint32_t i = 0; i < kBits; ++i) {
    uint8_t bit[2];
    columns.identification[i] = static_cast<uint16_t>(1 << i);
    base::StoreBig16(bit, columns.identification[i]);
    columns.column[i] = base ^ IcrcFlow::Extend(IcrcFlow::Extend(0, bit, 2), kZeros, after);
  }
  // The columns are independent, so each has a bit left: multiplying by x never maps a polynomial
  // of degree < 32 to 0 modulo the CRC's.
  for (uint32_t i = 0; i < kBits; ++i) {
    columns.pivot[i] = static_cast<uint8_t>(__builtin_ctz(columns.column[i]));
    for (uint32_t j = i + 1; j < kBits; ++j) {
      if ((columns.column[j] >> columns.pivot[i] & 1) == 0) continue;
      columns.column[j] ^= columns.column[i];
      columns.identification[j] ^= columns.identification[i];
    }
  }
  return columns;
}

}  // namespace tokamak::verbs::soft
