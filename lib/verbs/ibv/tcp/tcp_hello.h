// TcpHello is a message between two sides that connect their queue pairs by hand (--cm tcp).
// docs/tcp_cm.md draws it.
//
//   active                        passive
//     kAsk      ------------------->       a request
//               <------------------- kAccept (its queue pair is in ReadyToSend) or kReject
//     kReady    ------------------->       both are in ReadyToSend: connected
//     the TCP connection stays open; its end, by either side or by the network, ends the connection
//
// The other side is untrusted: a message that does not decode ends the line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/ibv/translation/attributes.h"

namespace tokamak::verbs::ibv {

constexpr uint32_t kTcpHelloMark = 0x4d434b54;  // "TKCM"
constexpr uint8_t kTcpHelloVersion = 1;
constexpr size_t kTcpHelloSize = 96;
constexpr size_t kTcpCmPrivateData = 56;  // Limits::max_private_data of --cm tcp

using TcpHelloBytes = std::array<uint8_t, kTcpHelloSize>;

struct TcpHello {
  enum class Kind : uint8_t { kAsk = 1, kAccept = 2, kReject = 3, kReady = 4 };

  Kind kind = Kind::kAsk;
  LinkKind link = LinkKind::kRoce;
  uint32_t queue_pair_number = 0;  // 24 bits
  uint32_t psn = 0;                // the first that this side sends, 24 bits
  PeerPort port;                   // this side's
  uint32_t path_mtu = kMinMtu;     // bytes: the most that this side takes; in kAccept the settled one
  uint8_t reads_served = 0;
  uint8_t reads_outstanding = 0;
  std::array<uint8_t, kTcpCmPrivateData> private_data{};
  uint8_t private_data_size = 0;

  absl::Span<const uint8_t> private_data_span() const { return {private_data.data(), private_data_size}; }
  void SetPrivateData(absl::Span<const uint8_t> bytes);  // at most kTcpCmPrivateData
};

TcpHelloBytes EncodeTcpHello(const TcpHello& hello);

// kInvalidArgument names the mistake.
absl::StatusOr<TcpHello> DecodeTcpHello(const TcpHelloBytes& bytes);

}  // namespace tokamak::verbs::ibv
