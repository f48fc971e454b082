// UdpReceiver takes datagrams from the kernel many at a time, checks and decodes them in place, and
// hands them on.
//
// With UDP_GRO one message of the kernel holds many datagrams of a flow. It hides the
// identification that the ICRC covers: those of a UDP_SEGMENT send, 0, 1, 2, ..., are tried first;
// otherwise it is solved for (icrc.h). A solution is expected if it is a segment's number or
// follows the sender's last: then the check is about as strong as the whole ICRC. Unexpected ones
// are counted. Packets of a multicast group's socket name the group.
// Law: nothing is allocated after construction.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/soft/packets/icrc.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire_tap.h"
#include "lib/verbs/soft/udp/segment_finder.h"
#include "lib/verbs/soft/udp/udp_counters.h"
#include "lib/verbs/soft/udp/udp_socket.h"

namespace tokamak::verbs::soft {

class UdpReceiver final {
 public:
  // Gets packets in order; they live during the call only. Returns false to get no more.
  using Deliver = absl::FunctionRef<bool(absl::Span<const Packet>)>;

  // Segments of a raw socket's message: as many as the kernel makes of one send (UDP_MAX_SEGMENTS,
  // 128 in newer kernels). Further ones are dropped.
  static constexpr uint32_t kMaxSegments = 128;

  // A search for segments costs as much as ten good packets, and anybody may cause one. After this
  // many failures in a batch, messages of more than one packet are dropped unsearched.
  static constexpr uint32_t kMaxFailedSearches = 4;

  // All must outlive the receiver; `tap` may be null.
  UdpReceiver(const UdpSocket& socket, const base::EventLoop& loop, UdpCounters& counters, WireTap* tap);

  // Reads one batch. Returns true if more may wait.
  bool Receive(Deliver deliver);

 private:
  // One recvmmsg. A message is UDP's largest; only bytes that arrive are touched.
  static constexpr uint32_t kMessages = 32;
  static constexpr uint32_t kMessageBytes = 65536;
  static constexpr uint32_t kPackets = 128;

  union Control {
    cmsghdr align;
    char bytes[2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t))];
  };

  // A sender and its last identification. Senders may share an entry; then some identifications are
  // unexpected.
  struct Sender {
    std::array<uint8_t, 16> ip{};
    uint16_t identification = 0;
  };

  // Identifications at most this far ahead are expected: packets may have been lost or sent
  // elsewhere.
  static constexpr uint16_t kExpectedAhead = 64;

  void PrepareMessages();
  void ReadControl(msghdr& header, uint32_t* segment);
  bool TakeMessage(uint32_t index, Deliver deliver);
  bool TakeRawMessage(absl::Span<const uint8_t> message, Deliver deliver);
  bool TakeDatagram(const IcrcFlow& flow, absl::Span<const uint8_t> datagram, uint16_t* identification);
  bool TakeGood(absl::Span<const uint8_t> datagram, uint16_t identification);
  bool DropMalformed(DecodeResult why);
  bool IsExpected(uint16_t identification) const;
  bool Flush(Deliver deliver);
  void ShowReceived(absl::Span<const uint8_t> datagram, uint16_t identification);

  const UdpSocket& socket_;
  const bool to_group_;
  const base::EventLoop& loop_;
  UdpCounters& counters_;
  WireTap* const tap_;
  IdentificationSolver solver_;
  const std::unique_ptr<const SegmentFinder> finder_;
  uint32_t kernel_drops_ = 0;  // the socket's count

  std::array<Sender, 64> senders_;

  // The message being taken apart.
  Address source_;
  uint8_t traffic_class_ = 0;
  Sender* sender_ = nullptr;

  std::unique_ptr<uint8_t[]> buffer_;
  std::array<mmsghdr, kMessages> header_;
  std::array<sockaddr_storage, kMessages> name_;
  std::array<Control, kMessages> control_;
  std::array<iovec, kMessages> piece_;
  uint32_t packets_ = 0;
  uint32_t failed_searches_ = 0;  // in this batch
  std::array<Packet, kPackets> packet_;
};

}  // namespace tokamak::verbs::soft
