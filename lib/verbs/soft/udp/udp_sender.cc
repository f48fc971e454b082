#include "lib/verbs/soft/udp/udp_sender.h"

#include <netinet/udp.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/verbs/soft/packets/datagram.h"

namespace tokamak::verbs::soft {
namespace {

// The bytes that are sent of phantom regions.
constexpr std::array<uint8_t, kMaxMtu> kNothing = {};

template <typename T>
void FillControl(cmsghdr* control, int level, int type, T value) {
  control->cmsg_level = level;
  control->cmsg_type = type;
  control->cmsg_len = CMSG_LEN(sizeof(T));
  std::memcpy(CMSG_DATA(control), &value, sizeof(value));
}

Address AtPort(Address address, uint16_t port) {
  address.port = port;
  return address;
}

}  // namespace

UdpSender::UdpSender(const UdpSocket& socket, bool segment, const base::EventLoop& loop, UdpCounters& counters,
                     WireTap* tap)
    : socket_(socket),
      loop_(loop),
      counters_(counters),
      tap_(tap),
      segment_(segment && socket.can_segment),
      named_(AtPort(socket.local, socket.peers_port)),
      source_(socket.local),
      peer_(socket.local),
      flow_(source_, peer_) {}

size_t UdpSender::Send(absl::Span<const Packet> packets) {
  busy_ = Busy::kNo;
  size_t taken = 0;
  while (taken < packets.size() && busy_ == Busy::kNo) {
    const absl::Span<const Packet> rest = packets.subspan(taken);
    const size_t planned = Plan(rest);
    taken += Transmit(rest.first(planned));
  }
  if (busy_ != Busy::kNo) counters_.busy.Add(1);
  return taken;
}

// Fills messages; returns how many packets they have, at least one.
size_t UdpSender::Plan(absl::Span<const Packet> packets) {
  packets_ = messages_ = pieces_ = bytes_ = glue_used_ = 0;
  for (const Packet& packet : packets) {
    const uint32_t length = DatagramLength(packet);
    CHECK(IsKnown(packet.opcode) && length <= kMaxDatagram) << "opcode " << static_cast<int>(packet.opcode);
    if (packets_ == kPackets || pieces_ + kPiecesPerPacket > kPieces || bytes_ >= kBytes) break;
    if (StartsMessage(packet, length)) {
      if (messages_ == kMessages) break;
      OpenMessage(packet, length);
    }
    Append(packet, length);
  }
  FinishMessages();
  return packets_;
}

bool UdpSender::StartsMessage(const Packet& packet, uint32_t length) const {
  if (messages_ == 0 || !segment_ || packets_ < singly_) return true;
  const Message& open = message_[messages_ - 1];
  return open.closed || length > open.segment || open.packets == kSegmentsPerMessage ||
         open.bytes + length > kBytesPerMessage || open.traffic_class != TrafficClassOf(packet) || !IsPeer(packet.peer);
}

// No copy: it runs for each packet.
bool UdpSender::IsPeer(const Address& peer) const {
  return (peer.port == 0 ? named_.port : peer.port) == peer_.port && peer.ip == peer_.ip;
}

void UdpSender::OpenMessage(const Packet& packet, uint32_t length) {
  const Address peer = DestinationOf(packet.peer, named_);
  const Address source = SourceOf(packet);
  if (peer != peer_ || source != source_) {
    peer_ = peer;
    source_ = source;
    flow_ = IcrcFlow(source_, peer_);
  }
  msghdr& header = header_[messages_].msg_hdr;
  header = {};
  header.msg_name = &name_[messages_];
  header.msg_namelen = ToSocketAddress(peer_, socket_.scope, &name_[messages_]);
  header.msg_iov = &piece_[pieces_];
  message_[messages_] = {};
  message_[messages_].first = packets_;
  message_[messages_].segment = length;
  message_[messages_].traffic_class = TrafficClassOf(packet);
  ++messages_;
}

Address UdpSender::SourceOf(const Packet& packet) const {
  Address source = socket_.local;
  if (socket_.is_raw() && packet.source_port != 0) source.port = packet.source_port;
  return source;
}

// The kernel numbers a send's datagrams from 0; we count all but 0, its "none".
uint16_t UdpSender::NextIdentification(const Message& message) {
  if (!socket_.is_raw()) return static_cast<uint16_t>(message.packets);
  if (++identification_ == 0) ++identification_;
  return identification_;
}

void UdpSender::Append(const Packet& packet, uint32_t length) {
  Message& message = message_[messages_ - 1];
  Encoded& encoded = encoded_[packets_];

  const uint16_t identification = NextIdentification(message);
  if (socket_.is_raw()) {
    WriteIpv4AndUdp(source_, peer_, identification, length, &glue_[glue_used_], message.traffic_class);
    AddPiece(&glue_[glue_used_], kIpv4AndUdpHeader);
    glue_used_ += kIpv4AndUdpHeader;
  }
  uint8_t* const header = &glue_[glue_used_];
  const uint32_t header_length = EncodeHeader(packet, header);
  glue_used_ += header_length;
  AddPiece(header, header_length);

  uint32_t icrc = flow_.Start(identification, {header, header_length}, length);
  for (uint32_t i = 0; i < packet.slices; ++i) {
    const PayloadSlice& slice = packet.payload[i];
    if (slice.length == 0) continue;
    const uint8_t* const bytes = slice.data != nullptr ? slice.data : kNothing.data();
    CHECK(slice.data != nullptr || slice.length <= kNothing.size());
    icrc = IcrcFlow::Extend(icrc, bytes, slice.length);
    AddPiece(bytes, slice.length);
  }

  uint8_t* const trailer = &glue_[glue_used_];
  const uint32_t pad = PadLength(packet.payload_length());
  std::memset(trailer, 0, pad);
  icrc = IcrcFlow::Extend(icrc, trailer, pad);
  base::StoreLittle<uint32_t>(trailer + pad, packet.corrupt ? ~icrc : icrc);
  glue_used_ += pad + kIcrcLength;
  AddPiece(trailer, pad + kIcrcLength);

  encoded = {header, header_length, trailer, pad + kIcrcLength, identification};
  message.closed = length < message.segment;
  message.bytes += length;
  ++message.packets;
  bytes_ += length;
  ++packets_;
}

// Adds a piece, or lengthens the last one if `bytes` follow it in memory.
void UdpSender::AddPiece(const uint8_t* bytes, uint32_t length) {
  msghdr& header = header_[messages_ - 1].msg_hdr;
  if (header.msg_iovlen != 0) {
    iovec& last = piece_[pieces_ - 1];
    if (static_cast<const uint8_t*>(last.iov_base) + last.iov_len == bytes) {
      last.iov_len += length;
      return;
    }
  }
  piece_[pieces_++] = {const_cast<uint8_t*>(bytes), length};
  ++header.msg_iovlen;
}

void UdpSender::FinishMessages() {
  for (uint32_t i = 0; i < messages_; ++i) FinishMessage(message_[i], &header_[i].msg_hdr, &control_[i]);
}

// Adds the settings that the socket does not have for all messages.
void UdpSender::FinishMessage(const Message& message, msghdr* header, Control* control) const {
  const bool segments = message.packets > 1;
  const bool has_class = message.traffic_class != 0 && !socket_.is_raw();
  if (!segments && !has_class) return;
  std::memset(control, 0, sizeof(*control));  // for CMSG_NXTHDR
  header->msg_control = control;
  header->msg_controllen = sizeof(*control);
  cmsghdr* next = CMSG_FIRSTHDR(header);
  size_t length = 0;
  if (segments) {
    FillControl(next, SOL_UDP, UDP_SEGMENT, static_cast<uint16_t>(message.segment));
    length += CMSG_SPACE(sizeof(uint16_t));
    next = CMSG_NXTHDR(header, next);
  }
  if (has_class) {
    const bool is_ipv4 = socket_.local.is_ipv4();
    FillControl(next, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_TOS : IPV6_TCLASS, int{message.traffic_class});
    length += CMSG_SPACE(sizeof(int));
  }
  header->msg_controllen = length;
}

// Sends the planned messages; returns how many packets are done with.
size_t UdpSender::Transmit(absl::Span<const Packet> packets) {
  uint32_t done = 0;
  while (done < messages_) {
    const int sent = sendmmsg(socket_.wire(), &header_[done], messages_ - done, MSG_DONTWAIT);
    counters_.send_calls.Add(1);
    if (sent > 0) {
      CountSent(packets, done, static_cast<uint32_t>(sent));
      done += static_cast<uint32_t>(sent);
    } else if (HandleError(errno, message_[done])) {
      ++done;
    } else {
      break;
    }
  }
  const size_t taken = done < messages_ ? message_[done].first : packets_;
  singly_ -= singly_ < taken ? singly_ : taken;
  if (done < messages_ && busy_ == Busy::kNo && message_[done].packets > 1) singly_ = message_[done].packets;
  return taken;
}

// Returns true if `message` was dropped; otherwise it goes again, in another way or later.
bool UdpSender::HandleError(int error, const Message& message) {
  switch (error) {
    case EAGAIN:
      busy_ = Busy::kSocket;
      return false;
    case ENOBUFS:
    case ENOMEM:
      busy_ = Busy::kMachine;
      return false;
    case EINTR:
      return false;
    case EIO:  // the interface does no UDP checksums, so no segmentation
      if (message.packets == 1) break;
      LOG(WARNING) << "UDP segmentation does not work here; packets go one by one, which is slower";
      segment_ = false;
      return false;
    case EINVAL:
    case EMSGSIZE:  // perhaps only one datagram is at fault: sent singly, each gets an answer of its own
      if (message.packets > 1) return false;
      break;
    default:
      break;
  }
  UdpDrop drop = UdpDrop::kRefused;
  if (error == EMSGSIZE) drop = UdpDrop::kTooLong;
  if (error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EAFNOSUPPORT) {
    drop = UdpDrop::kUnreachable;
  }
  counters_.Drop(drop, message.packets);
  return true;
}

void UdpSender::CountSent(absl::Span<const Packet> packets, uint32_t first_message, uint32_t messages) {
  uint64_t count = 0;
  uint64_t bytes = 0;
  for (uint32_t i = first_message; i < first_message + messages; ++i) {
    count += message_[i].packets;
    bytes += message_[i].bytes;
    if (tap_ != nullptr) ShowSent(packets, message_[i]);
  }
  counters_.packets_sent.Add(count);
  counters_.bytes_sent.Add(bytes);
}

void UdpSender::ShowSent(absl::Span<const Packet> packets, const Message& message) {
  for (uint32_t i = 0; i < message.packets; ++i) {
    const Packet& packet = packets[message.first + i];
    const Encoded& encoded = encoded_[message.first + i];
    PayloadSlice pieces[kPiecesPerPacket];
    uint32_t count = 0;
    pieces[count++] = {encoded.header, encoded.header_length};
    for (uint32_t j = 0; j < packet.slices; ++j) {
      const PayloadSlice& slice = packet.payload[j];
      pieces[count++] = {slice.data != nullptr ? slice.data : kNothing.data(), slice.length};
    }
    pieces[count++] = {encoded.trailer, encoded.trailer_length};

    Datagram datagram;
    datagram.time = loop_.Now();
    datagram.source = SourceOf(packet);
    datagram.destination = DestinationOf(packet.peer, named_);
    datagram.identification = encoded.identification;
    datagram.traffic_class = message.traffic_class;
    datagram.pieces = absl::MakeConstSpan(pieces, count);
    tap_->Show(datagram);
  }
}

}  // namespace tokamak::verbs::soft
