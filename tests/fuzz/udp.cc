// The UDP fabric's port on a real socket: datagrams of any bytes, alone or several in one piece,
// IPv4 and IPv6.
//
// Law: each datagram is handed over or counted as dropped, once. A datagram that is handed over was
// sent: its ICRC says so.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/soft/udp/udp_fabric.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace verbs::soft;  // NOLINT: its whole wire is the subject
using verbs::Address;

constexpr int kMostPieces = 24;
constexpr size_t kMostBytes = 9000;  // of a piece

// Processes that fuzz at the same time have addresses of their own; IPv6 has one loopback address
// only.
Address PlaceFor(bool ipv6, bool sender) {
  const auto process = static_cast<uint32_t>(getpid());
  const uint32_t port = 10000 + process % 10000 * 2 + (sender ? 1 : 0);
  const std::string text =
      ipv6 ? absl::StrCat("[::1]:", port)
           : absl::StrCat("127.", 64 + (process >> 16 & 31), ".", process >> 8 & 255, ".", process & 255, ":", port);
  return *Address::Parse(text);
}

class Sender final {
 public:
  explicit Sender(const Address& address) : fd_(socket(address.is_ipv4() ? AF_INET : AF_INET6, SOCK_DGRAM, 0)) {
    sockaddr_storage name;
    const socklen_t length = ToSocketAddress(address, 0, &name);
    PCHECK(bind(fd_, reinterpret_cast<sockaddr*>(&name), length) == 0);
  }
  ~Sender() { close(fd_); }

  // Cut by the kernel after each `segment` bytes, 0: not at all. Returns how many datagrams left.
  size_t Send(const Address& to, absl::Span<const uint8_t> bytes, uint16_t segment) const {
    sockaddr_storage name;
    iovec piece = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_name = &name;
    message.msg_namelen = ToSocketAddress(to, 0, &name);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = {};
    if (segment > 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_UDP;
      header->cmsg_type = UDP_SEGMENT;
      header->cmsg_len = CMSG_LEN(sizeof(segment));
      std::memcpy(CMSG_DATA(header), &segment, sizeof(segment));
    }
    if (sendmsg(fd_, &message, 0) < 0) return 0;  // a segment that the kernel does not like
    return segment == 0 ? 1 : (bytes.size() + segment - 1) / segment;
  }

 private:
  const int fd_;
};

// A datagram whose ICRC is right, and whose header may be malformed.
std::vector<uint8_t> Sealed(Input* input, const IcrcFlow& flow) {
  const absl::Span<const uint8_t> given = input->Bytes(input->Below(8) == 7 ? kMaxDatagram : 80);
  std::vector<uint8_t> bytes(given.begin(), given.end());
  bytes.resize(std::max<size_t>(bytes.size(), kMinDatagram));
  const uint16_t identification = input->Flag() ? 0 : input->Take<uint16_t>();
  base::StoreLittle<uint32_t>(bytes.data() + bytes.size() - kIcrcLength, flow.OfDatagram(identification, bytes));
  return bytes;
}

uint64_t Counted(const UdpCounters& counters) {
  return counters.packets_received.value() + counters.Dropped(UdpDrop::kMalformed) + counters.Dropped(UdpDrop::kIcrc) +
         counters.Dropped(UdpDrop::kTruncated);
}

void Try(Input input) {
  const bool ipv6 = input.Flag();
  const Address here = PlaceFor(ipv6, false), there = PlaceFor(ipv6, true);
  os::EpollLoop loop;
  UdpFabric fabric(loop);
  uint64_t handed_over = 0;
  const auto on_packets = [&](absl::Span<const Packet> packets) {
    handed_over += packets.size();
    for (const Packet& packet : packets) {
      CHECK(IsKnown(packet.opcode) && packet.slices <= 1 && packet.payload_length() <= verbs::kMaxMtu);
      CHECK(packet.peer.ip == there.ip);
    }
  };
  auto port = fabric.Open(loop, here, {on_packets, [] {}});
  CHECK(port.ok()) << port.status();
  const Sender sender(there);
  const IcrcFlow flow(there, here);
  uint64_t sent = 0;
  for (int piece = 0; piece < kMostPieces && !input.empty(); ++piece) {
    std::vector<uint8_t> bytes;
    uint16_t segment = 0;
    if (input.Flag()) {
      const absl::Span<const uint8_t> given = input.Bytes(200);
      bytes.assign(given.begin(), given.end());
    } else {
      bytes = Sealed(&input, flow);
      segment = static_cast<uint16_t>(input.Flag() ? 0 : bytes.size());
      for (uint32_t more = segment == 0 ? 0 : input.Below(8); more > 0 && bytes.size() < kMostBytes; --more) {
        const std::vector<uint8_t> next = Sealed(&input, flow);
        bytes.insert(bytes.end(), next.begin(), next.end());
      }
      if (input.Below(8) == 7) segment = static_cast<uint16_t>(1 + input.Take<uint8_t>());
      if (input.Below(8) == 7) bytes[input.Take<uint16_t>() % bytes.size()] ^= input.Take<uint8_t>();
    }
    sent += sender.Send(here, bytes, segment);
  }
  // On loopback all sent datagrams have arrived, except the kernel's own losses, which it counts.
  CHECK(loop.RunUntil(
      [&] { return Counted(fabric.counters()) + fabric.counters().Dropped(UdpDrop::kSocketBuffer) >= sent; },
      loop.Now() + base::Seconds(10)))
      << Counted(fabric.counters()) << " of " << sent << " datagrams are accounted for";
  CHECK_LE(Counted(fabric.counters()), sent);
  CHECK_EQ(fabric.counters().packets_received.value(), handed_over);
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Try(tokamak::fuzz::Input(data, size));
  return 0;
}
