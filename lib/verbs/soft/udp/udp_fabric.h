// UdpFabric carries packets between machines as RoCEv2: UDP datagrams to port 4791, which Wireshark
// decodes and RDMA NICs and the kernel's Soft-RoCE understand. Two ways onto the same wire:
//
//   soft:udp   UDP sockets, with the kernel's segmentation and receive offload; no privilege
//   soft:raw   raw sockets, for foreign peers that need full control of the IPv4 header
//              (raw_socket.h); slower, CAP_NET_RAW
//
// Batching is the design: one packet for each system call moves a tenth of the bytes that 64 do. So
// the NIC should Send all in one batch, packets of one message after another, and it gets packets
// that arrived together in one batch.
//
// A port of soft:udp is one socket: every packet leaves from its bound port, whatever
// Packet::source_port asks for. The peer of a packet from a port of RDMA NICs' flows (kFlowPorts
// and above) is taken to listen at 4791; of any other, at the port that it sends from. soft:raw
// sends each queue pair's packets from a source port of their own, so that routers spread them over
// paths.
//
// The kernel hides two things from a UDP socket: the IPv4 identification, which the ICRC covers
// (udp_socket.h, icrc.h, and docs/packets.md), and how much is in flight (receive_window: a UDP
// socket drops what does not fit its buffer).
//
// Thread rule: the fabric and its ports belong to the one thread of their loop; counters may be
// read from any. The fabric must outlive its ports.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/packets/wire_tap.h"
#include "lib/verbs/soft/udp/udp_counters.h"
#include "lib/verbs/soft/udp/udp_socket.h"

namespace tokamak::verbs::soft {

struct UdpDeviceName {
  Address address;
  bool raw = false;
};

// Parses "soft:udp@10.0.0.1", "soft:udp@[fd00::1]:4792" or "soft:raw@10.0.0.1". Port 4791 unless
// given; another one is a private dialect between our NICs, for several on one address. Two with
// one port meet without more; otherwise the address of a service names its UDP port, as
// Listener::address() does.
absl::StatusOr<UdpDeviceName> ParseUdpDevice(absl::string_view name);

// Returns true if it starts like one of these.
bool IsUdpDevice(absl::string_view name);

struct UdpFabricOptions {
  bool raw = false;  // raw sockets: soft:raw
  UdpSocketOptions socket;
  // True to send batches with UDP_SEGMENT. A network card that segments in hardware but numbers the
  // pieces differently from the kernel would break the ICRC for peers that do not solve for the
  // identification; false is slower, and never wrong.
  bool segment = true;
  WireTap* tap = nullptr;  // sees all datagrams; must outlive the fabric
};

class UdpFabric final : public Fabric {
 public:
  explicit UdpFabric(os::EpollLoop& loop, const UdpFabricOptions& options = {}) : loop_(loop), options_(options) {}

  // `loop` is the one that the fabric was made with. Address: ip and UDP port, 0 meaning 4791.
  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override;

  // Counts of all ports together.
  const UdpCounters& counters() const { return counters_; }

 private:
  os::EpollLoop& loop_;
  const UdpFabricOptions options_;
  UdpCounters counters_;
};

}  // namespace tokamak::verbs::soft
