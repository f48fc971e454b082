#include "lib/verbs/soft/udp/udp_receiver.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "lib/verbs/soft/udp/ipv4.h"

namespace tokamak::verbs::soft {

UdpReceiver::UdpReceiver(const UdpSocket& socket, const base::EventLoop& loop, UdpCounters& counters, WireTap* tap)
    : socket_(socket),
      to_group_(socket.local.is_multicast()),
      loop_(loop),
      counters_(counters),
      tap_(tap),
      finder_(socket.is_raw() ? std::make_unique<SegmentFinder>() : nullptr),
      buffer_(new uint8_t[kMessages * kMessageBytes]) {
  for (uint32_t i = 0; i < kMessages; ++i) piece_[i] = {buffer_.get() + i * kMessageBytes, kMessageBytes};
}

bool UdpReceiver::Receive(Deliver deliver) {
  PrepareMessages();
  const int received = recvmmsg(socket_.wire(), header_.data(), kMessages, MSG_DONTWAIT, nullptr);
  counters_.receive_calls.Add(1);
  if (received <= 0) return false;
  packets_ = failed_searches_ = 0;
  for (uint32_t i = 0; i < static_cast<uint32_t>(received); ++i) {
    if (!TakeMessage(i, deliver)) return false;
  }
  return Flush(deliver) && received == kMessages;
}

void UdpReceiver::PrepareMessages() {
  for (uint32_t i = 0; i < kMessages; ++i) {
    msghdr& header = header_[i].msg_hdr;
    header.msg_name = &name_[i];
    header.msg_namelen = sizeof(name_[i]);
    header.msg_iov = &piece_[i];
    header.msg_iovlen = 1;
    header.msg_control = &control_[i];
    header.msg_controllen = sizeof(control_[i]);
    header.msg_flags = 0;
  }
}

// `*segment` stays as it is if the message is one datagram. The kernel joins only datagrams of one
// traffic class.
void UdpReceiver::ReadControl(msghdr& header, uint32_t* segment) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO) {
      int size = 0;
      std::memcpy(&size, CMSG_DATA(control), sizeof(size));
      if (size > 0) *segment = static_cast<uint32_t>(size);
    } else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS) {
      traffic_class_ = *CMSG_DATA(control);
    } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_TCLASS) {
      int traffic_class = 0;
      std::memcpy(&traffic_class, CMSG_DATA(control), sizeof(traffic_class));
      traffic_class_ = static_cast<uint8_t>(traffic_class);
    } else if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_RXQ_OVFL) {
      uint32_t drops = 0;
      std::memcpy(&drops, CMSG_DATA(control), sizeof(drops));
      counters_.Drop(UdpDrop::kSocketBuffer, drops - kernel_drops_);
      kernel_drops_ = drops;
    }
  }
}

bool UdpReceiver::TakeMessage(uint32_t index, Deliver deliver) {
  msghdr& header = header_[index].msg_hdr;
  const auto* bytes = static_cast<const uint8_t*>(piece_[index].iov_base);
  const uint32_t length = header_[index].msg_len;
  uint32_t segment = length;
  traffic_class_ = 0;
  ReadControl(header, &segment);
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    counters_.Drop(UdpDrop::kTruncated, 1);
    return true;
  }
  if (socket_.is_raw()) return TakeRawMessage({bytes, length}, deliver);
  if (length == 0) DropMalformed(DecodeResult::kTooShort);
  source_ = FromSocketAddress(name_[index]);
  sender_ = &senders_[(source_.ip[15] ^ source_.ip[14]) % senders_.size()];
  const IcrcFlow flow(source_, socket_.local);
  uint16_t identification = 0;
  for (uint32_t offset = 0; offset < length; offset += segment) {
    if (packets_ == kPackets && !Flush(deliver)) return false;
    if (TakeDatagram(flow, {bytes + offset, std::min(segment, length - offset)}, &identification)) ++packets_;
    ++identification;
  }
  return true;
}

// Takes one IP packet: one datagram or, from a sender on this machine, several.
bool UdpReceiver::TakeRawMessage(absl::Span<const uint8_t> message, Deliver deliver) {
  const std::optional<Ipv4AndUdp> header = ReadIpv4AndUdp(message);
  if (!header.has_value() || header->destination != socket_.local) return true;  // came before the filter
  source_ = header->source;
  traffic_class_ = header->traffic_class;
  const IcrcFlow flow(source_, socket_.local, header->dont_fragment);
  absl::Span<const uint8_t> rest = message.subspan(kIpv4AndUdpHeader);
  if (rest.size() < kMinDatagram) {
    DropMalformed(DecodeResult::kTooShort);
    return true;
  }
  const auto fits = [&](absl::Span<const uint8_t> datagram, uint16_t identification) {
    return datagram.size() >= kMinDatagram && datagram.size() <= kMaxDatagram &&
           flow.OfDatagram(identification, datagram) == ReceivedIcrc(datagram);
  };
  uint16_t identification = header->identification;
  size_t segment = rest.size();
  if (!fits(rest, identification)) {
    segment = failed_searches_ < kMaxFailedSearches ? finder_->Find(flow, identification, rest) : 0;
    if (segment == 0) {
      ++failed_searches_;
      counters_.Drop(UdpDrop::kIcrc, 1);
      return true;
    }
  }
  const bool known_good = segment == rest.size();
  for (uint32_t segments = 0; !rest.empty(); ++identification) {
    if (segments++ == kMaxSegments) {
      counters_.Drop(UdpDrop::kTruncated, 1);
      return true;
    }
    const absl::Span<const uint8_t> datagram = rest.subspan(0, segment);
    rest.remove_prefix(datagram.size());
    if (packets_ == kPackets && !Flush(deliver)) return false;
    if (!known_good && !fits(datagram, identification)) {
      counters_.Drop(UdpDrop::kIcrc, 1);
    } else if (TakeGood(datagram, identification)) {
      ++packets_;
    }
  }
  return true;
}

// Expects `*identification`, and sets it to the one found. Returns true if packet_[packets_] is a
// good packet.
bool UdpReceiver::TakeDatagram(const IcrcFlow& flow, absl::Span<const uint8_t> datagram, uint16_t* identification) {
  const auto length = static_cast<uint32_t>(datagram.size());
  if (length < kMinDatagram) return DropMalformed(DecodeResult::kTooShort);
  const uint32_t received = ReceivedIcrc(datagram);
  const uint32_t computed = flow.OfDatagram(*identification, datagram);
  if (computed != received) {
    const std::optional<uint16_t> solved =
        flow.is_ipv4() ? solver_.Solve(*identification, computed, received, length) : std::nullopt;
    if (!solved.has_value()) {
      counters_.Drop(UdpDrop::kIcrc, 1);
      return false;
    }
    if (!IsExpected(*solved)) counters_.identifications_unexpected.Add(1);
    *identification = *solved;
    sender_->ip = source_.ip;
    sender_->identification = *solved;
  }
  return TakeGood(datagram, *identification);
}

// Takes a datagram whose ICRC is right. Returns true if packet_[packets_] is a good packet.
bool UdpReceiver::TakeGood(absl::Span<const uint8_t> datagram, uint16_t identification) {
  if (tap_ != nullptr) ShowReceived(datagram, identification);
  Packet& packet = packet_[packets_];
  if (const DecodeResult result = Decode(datagram, &packet); result != DecodeResult::kOk) return DropMalformed(result);
  packet.peer = source_;
  if (source_.port >= kFlowPorts) packet.peer.port = kRoceUdpPort;
  packet.source_port = source_.port;
  if (to_group_) packet.group = socket_.local.ip;
  SetTrafficClass(traffic_class_, &packet);
  counters_.packets_received.Add(1);
  counters_.bytes_received.Add(datagram.size());
  return true;
}

bool UdpReceiver::DropMalformed(DecodeResult why) {
  counters_.Drop(UdpDrop::kMalformed, 1);
  counters_.malformed[static_cast<uint32_t>(why)].Add(1);
  return false;
}

bool UdpReceiver::IsExpected(uint16_t identification) const {
  if (identification < kExpectedAhead) return true;
  return sender_->ip == source_.ip &&
         static_cast<uint16_t>(identification - sender_->identification - 1) < kExpectedAhead;
}

bool UdpReceiver::Flush(Deliver deliver) {
  if (packets_ == 0) return true;
  const uint32_t packets = packets_;
  packets_ = 0;
  return deliver(absl::MakeConstSpan(packet_.data(), packets));
}

void UdpReceiver::ShowReceived(absl::Span<const uint8_t> datagram, uint16_t identification) {
  const PayloadSlice piece = {datagram.data(), static_cast<uint32_t>(datagram.size())};
  Datagram shown;
  shown.time = loop_.Now();
  shown.source = source_;
  shown.destination = socket_.local;
  shown.identification = identification;
  shown.traffic_class = traffic_class_;
  shown.pieces = absl::MakeConstSpan(&piece, 1);
  tap_->Show(shown);
}

}  // namespace tokamak::verbs::soft
