#include "lib/verbs/ibv/tcp/tcp_hello.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/check.h"

namespace tokamak::verbs::ibv {
namespace {

// Offsets.
constexpr size_t kMark = 0;
constexpr size_t kVersion = 4;
constexpr size_t kKind = 5;
constexpr size_t kLink = 6;
constexpr size_t kPrivateDataSize = 7;
constexpr size_t kQueuePair = 8;
constexpr size_t kPsn = 12;
constexpr size_t kLid = 16;
constexpr size_t kPathMtu = 18;
constexpr size_t kReadsServed = 20;
constexpr size_t kReadsOutstanding = 21;
constexpr size_t kReserved = 22;
constexpr size_t kGid = 24;
constexpr size_t kPrivateData = 40;
static_assert(kGid + sizeof(Gid) == kPrivateData && kPrivateData + kTcpCmPrivateData == kTcpHelloSize);

constexpr uint32_t kMost24Bits = 0xffffff;

}  // namespace

void TcpHello::SetPrivateData(absl::Span<const uint8_t> bytes) {
  CHECK_LE(bytes.size(), private_data.size());
  std::copy(bytes.begin(), bytes.end(), private_data.begin());
  private_data_size = static_cast<uint8_t>(bytes.size());
}

TcpHelloBytes EncodeTcpHello(const TcpHello& hello) {
  TcpHelloBytes bytes{};
  uint8_t* const to = bytes.data();
  base::StoreLittle<uint32_t>(to + kMark, kTcpHelloMark);
  to[kVersion] = kTcpHelloVersion;
  to[kKind] = static_cast<uint8_t>(hello.kind);
  to[kLink] = static_cast<uint8_t>(hello.link);
  to[kPrivateDataSize] = hello.private_data_size;
  base::StoreLittle<uint32_t>(to + kQueuePair, hello.queue_pair_number);
  base::StoreLittle<uint32_t>(to + kPsn, hello.psn);
  base::StoreLittle<uint16_t>(to + kLid, hello.port.lid);
  base::StoreLittle<uint16_t>(to + kPathMtu, static_cast<uint16_t>(hello.path_mtu));
  to[kReadsServed] = hello.reads_served;
  to[kReadsOutstanding] = hello.reads_outstanding;
  std::copy(hello.port.gid.begin(), hello.port.gid.end(), to + kGid);
  std::copy(hello.private_data.begin(), hello.private_data.begin() + hello.private_data_size, to + kPrivateData);
  return bytes;
}

absl::StatusOr<TcpHello> DecodeTcpHello(const TcpHelloBytes& bytes) {
  const uint8_t* const from = bytes.data();
  if (base::LoadLittle<uint32_t>(from + kMark) != kTcpHelloMark) {
    return absl::InvalidArgumentError("the peer does not speak --cm tcp");
  }
  if (from[kVersion] != kTcpHelloVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer speaks version ", from[kVersion], " of --cm tcp, and we ", kTcpHelloVersion));
  }
  TcpHello hello;
  hello.kind = static_cast<TcpHello::Kind>(from[kKind]);
  hello.link = static_cast<LinkKind>(from[kLink]);
  hello.private_data_size = from[kPrivateDataSize];
  hello.queue_pair_number = base::LoadLittle<uint32_t>(from + kQueuePair);
  hello.psn = base::LoadLittle<uint32_t>(from + kPsn);
  hello.port.lid = base::LoadLittle<uint16_t>(from + kLid);
  hello.path_mtu = base::LoadLittle<uint16_t>(from + kPathMtu);
  hello.reads_served = from[kReadsServed];
  hello.reads_outstanding = from[kReadsOutstanding];
  std::copy_n(from + kGid, hello.port.gid.size(), hello.port.gid.begin());
  if (hello.kind < TcpHello::Kind::kAsk || hello.kind > TcpHello::Kind::kReady) {
    return absl::InvalidArgumentError(absl::StrCat("a message of kind ", from[kKind]));
  }
  if (hello.link != LinkKind::kInfiniBand && hello.link != LinkKind::kRoce) {
    return absl::InvalidArgumentError(absl::StrCat("a link of kind ", from[kLink]));
  }
  if (hello.private_data_size > kTcpCmPrivateData) {
    return absl::InvalidArgumentError(absl::StrCat(hello.private_data_size, " bytes of private data"));
  }
  if (hello.queue_pair_number > kMost24Bits || hello.psn > kMost24Bits) {
    return absl::InvalidArgumentError("a queue pair's number or a PSN of more than 24 bits");
  }
  if (MtuBytes(MtuCode(hello.path_mtu)) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("a path MTU of ", hello.path_mtu));
  }
  if (from[kReserved] != 0 || from[kReserved + 1] != 0) return absl::InvalidArgumentError("reserved bytes are set");
  const uint8_t* const data = from + kPrivateData;
  if (std::any_of(data + hello.private_data_size, from + kTcpHelloSize, [](uint8_t byte) { return byte != 0; })) {
    return absl::InvalidArgumentError("bytes behind the private data are set");
  }
  std::copy_n(data, hello.private_data_size, hello.private_data.begin());
  return hello;
}

}  // namespace tokamak::verbs::ibv
