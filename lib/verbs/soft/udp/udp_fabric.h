// UdpFabric carries packets between machines as RoCEv2: UDP datagrams to port 4791, as RDMA NICs
// and the kernel's Soft-RoCE do. Two ways onto the same wire:
//
//   soft:udp   UDP sockets, with the kernel's segmentation and receive offload; no privilege
//   soft:raw   raw sockets, for foreign peers that need full control of the IPv4 header
//              (raw_socket.h); slower, CAP_NET_RAW
//
// Batches of 64 move ten times as many bytes as one packet per system call, so the NIC Sends all it
// has at once.
//
// A port of soft:udp is one socket: every packet leaves from its bound port, whatever
// Packet::source_port says. A peer that sends from a flow port (kFlowPorts and above) is taken to
// listen at 4791, any other at the port that it sends from. soft:raw has a source port for each
// queue pair, for ECMP.
//
// The kernel hides the IPv4 identification, which the ICRC covers (udp_socket.h, icrc.h,
// docs/packets.md).
//
// Thread rule: the fabric and its ports belong to their loop's thread; counters may be read from
// any. The fabric must outlive its ports.
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

// Parses "soft:udp@10.0.0.1", "soft:udp@[fd00::1]:4792" or "soft:raw@10.0.0.1". Default port 4791;
// another one is a private dialect between our NICs, for several on one address. Two with the same
// port meet without more; otherwise a service's address names its UDP port, as Listener::address()
// does.
absl::StatusOr<UdpDeviceName> ParseUdpDevice(absl::string_view name);

// True if it starts like one of these.
bool IsUdpDevice(absl::string_view name);

struct UdpFabricOptions {
  bool raw = false;  // soft:raw
  UdpSocketOptions socket;
  // True to send batches with UDP_SEGMENT. A network card that numbers the segments otherwise than
  // the kernel would break the ICRC for peers that do not solve for the identification; false is
  // slower, but never wrong.
  bool segment = true;
  WireTap* tap = nullptr;  // sees all datagrams; must outlive the fabric
};

class UdpFabric final : public Fabric {
 public:
  explicit UdpFabric(os::EpollLoop& loop, const UdpFabricOptions& options = {}) : loop_(loop), options_(options) {}

  // `loop` is the one that the fabric was made with. `address` has IP and UDP port; port 0 means
  // 4791.
  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override;

  // Sums over all ports.
  const UdpCounters& counters() const { return counters_; }

 private:
  os::EpollLoop& loop_;
  const UdpFabricOptions options_;
  UdpCounters counters_;
};

}  // namespace tokamak::verbs::soft
