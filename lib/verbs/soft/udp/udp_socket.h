// A UDP socket set up for RoCEv2: the wire has the bytes that the ICRC covers, and batches go in
// and out in one piece.
//
// Law: the socket is never connected and never fragments (IP_PMTUDISC_DO). Only so the kernel sends
// IPv4 identification 0 and, within one UDP_SEGMENT send, 0, 1, 2, ...: the identifications that
// the ICRC is computed with.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// RDMA NICs and the kernel's Soft-RoCE send from a port from here on, to spread flows over paths,
// and listen on 4791 alone. Ours send from their bound port, which is below.
constexpr uint16_t kFlowPorts = 0xc000;

struct UdpSocketOptions {
  uint32_t receive_buffer = 8 << 20;  // bytes asked of the kernel, which may give less
  uint32_t send_buffer = 4 << 20;
  // True to bind a free port of RDMA NICs' flows (kFlowPorts) and only send: another process has
  // the port that peers send to.
  bool sends_only = false;
};

struct UdpSocket {
  os::FileDescriptor fd;
  os::FileDescriptor raw;       // soft:raw: packets pass through this one, and `fd` keeps the port (raw_socket.h)
  Address local;                // with the bound port
  uint16_t peers_port = 0;      // of peers that name no port: the bound one, unless the socket only sends
  uint32_t interface = 0;       // index of the one with the address; 0: unknown
  bool on_loopback = false;     // true if that is the machine's own
  uint32_t scope = 0;           // the same, if `local` is an IPv6 link-local address
  uint32_t link_mtu = 0;        // bytes of an IP packet, of that interface
  uint64_t receive_buffer = 0;  // bytes, as the kernel counts them: with its overhead
  bool can_segment = false;     // true if the kernel knows UDP_SEGMENT

  bool is_raw() const { return raw.valid(); }
  // The descriptor that packets pass through.
  int wire() const { return is_raw() ? raw.get() : fd.get(); }
};

// Binds `address`, or only its IP address (sends_only); port 0 is kRoceUdpPort, ports from
// kFlowPorts on are refused. Errors say what an operator can do: kAlreadyExists when the port is
// taken, kNotFound when no interface has the address.
absl::StatusOr<UdpSocket> OpenUdpSocket(const Address& address, const UdpSocketOptions& options);

// Opens a socket for packets to a multicast group: bound to the group, at the UDP port of `port`,
// which gets only packets to its own address. Joins (IGMP, MLD) on the interface of `port`. Every
// device of the machine that is in the group gets each packet, those of other users too.
// kUnimplemented: IPv6 on the loopback interface, where the kernel carries no multicast.
absl::StatusOr<UdpSocket> OpenGroupSocket(const UdpSocket& port, const Address& group, const UdpSocketOptions& options);

// Gives a socket buffers, beyond the system's limit if allowed, else up to it. Returns the receive
// buffer's bytes, as the kernel counts them. Less than asked for is logged, as of `local`.
absl::StatusOr<uint64_t> SetUpBuffers(int fd, const UdpSocketOptions& options, const Address& local);

// Returns the largest path MTU (256 to 4096) whose packets fit an IP packet of `link_mtu` bytes
// with any headers; 0 when none does.
uint32_t PathMtuFor(uint32_t link_mtu, bool is_ipv4);

// Writes the kernel's form of an address, of its family; returns its length.
socklen_t ToSocketAddress(const Address& address, uint32_t scope, sockaddr_storage* out);
Address FromSocketAddress(const sockaddr_storage& address);

}  // namespace tokamak::verbs::soft
