// UdpSender gives packets to the kernel, as datagrams, in as few and as large pieces as it takes.
//
// Consecutive packets to one peer, of one traffic class and length (the last may be shorter), are
// one UDP_SEGMENT send; many sends are one sendmmsg. Payload is not copied; headers, pads and ICRCs
// are written next to each other, so that the end of one packet and the start of the next are one
// piece. Through a raw socket packets leave with our IP and UDP headers, from their flow's source
// port.
// Law: nothing is allocated after construction.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/packets/icrc.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"
#include "lib/verbs/soft/packets/wire_tap.h"
#include "lib/verbs/soft/udp/ipv4.h"
#include "lib/verbs/soft/udp/udp_counters.h"
#include "lib/verbs/soft/udp/udp_socket.h"

namespace tokamak::verbs::soft {

class UdpSender final {
 public:
  // Why not all packets were taken.
  enum class Busy {
    kNo,       // all were taken
    kSocket,   // the socket's buffer is full: it will become writable
    kMachine,  // the kernel had no memory, and does not report when it has
  };

  // All must outlive the sender; `tap` may be null. `segment` allows UDP_SEGMENT.
  UdpSender(const UdpSocket& socket, bool segment, const base::EventLoop& loop, UdpCounters& counters, WireTap* tap);

  // Returns how many were taken: sent, or dropped and counted.
  size_t Send(absl::Span<const Packet> packets);

  // About the last Send.
  Busy busy() const { return busy_; }

  bool segments() const { return segment_; }

 private:
  // Bounds of one sendmmsg; its bytes should fit a core's cache beside the kernel's work.
  static constexpr uint32_t kPackets = 256;
  static constexpr uint32_t kMessages = 64;
  static constexpr uint32_t kBytes = 256 * 1024;
  static constexpr uint32_t kPieces = 1024;
  // Bounds of one message (the kernel's are 64 segments, an IP packet of 65,535 bytes, 1,024
  // pieces).
  static constexpr uint32_t kSegmentsPerMessage = 64;
  static constexpr uint32_t kBytesPerMessage = 65000;
  static constexpr uint32_t kPiecesPerPacket = kMaxPayloadSlices + 2;
  static_assert(kSegmentsPerMessage * kPiecesPerPacket <= 1024);
  static_assert(kPiecesPerPacket <= kPieces);

  // An encoded packet, for the tap.
  struct Encoded {
    const uint8_t* header;
    uint32_t header_length;
    const uint8_t* trailer;
    uint32_t trailer_length;
    uint16_t identification;
  };
  struct Message {
    uint32_t first = 0;  // index of its first packet
    uint32_t packets = 0;
    uint32_t segment = 0;  // length of each datagram except the last
    uint32_t bytes = 0;
    uint8_t traffic_class = 0;
    bool closed = false;  // its last datagram was shorter
  };
  union Control {
    cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int))];
  };

  size_t Plan(absl::Span<const Packet> packets);
  bool StartsMessage(const Packet& packet, uint32_t length) const;
  void OpenMessage(const Packet& packet, uint32_t length);
  void Append(const Packet& packet, uint32_t length);
  void AddPiece(const uint8_t* bytes, uint32_t length);
  void FinishMessages();
  void FinishMessage(const Message& message, msghdr* header, Control* control) const;

  size_t Transmit(absl::Span<const Packet> packets);
  bool HandleError(int error, const Message& message);
  void CountSent(absl::Span<const Packet> packets, uint32_t first_message, uint32_t messages);
  void ShowSent(absl::Span<const Packet> packets, const Message& message);

  uint16_t NextIdentification(const Message& message);
  Address SourceOf(const Packet& packet) const;
  bool IsPeer(const Address& peer) const;

  const UdpSocket& socket_;
  const base::EventLoop& loop_;
  UdpCounters& counters_;
  WireTap* const tap_;
  bool segment_;
  size_t singly_ = 0;  // this many more packets go without UDP_SEGMENT
  Busy busy_ = Busy::kNo;

  uint16_t identification_ = 0;  // raw: the last

  // The ends of the message that is being filled.
  const Address named_;  // this port, as peers see it
  Address source_;
  Address peer_;
  IcrcFlow flow_;

  uint32_t packets_ = 0;
  uint32_t messages_ = 0;
  uint32_t pieces_ = 0;
  uint32_t bytes_ = 0;
  uint32_t glue_used_ = 0;
  std::array<Encoded, kPackets> encoded_;
  std::array<Message, kMessages> message_;
  std::array<mmsghdr, kMessages> header_;
  std::array<sockaddr_storage, kMessages> name_;
  std::array<Control, kMessages> control_;
  std::array<iovec, kPieces> piece_;
  std::array<uint8_t, kPackets*(kIpv4AndUdpHeader + kMaxHeaderLength + kMaxTrailerLength)> glue_;
};

}  // namespace tokamak::verbs::soft
