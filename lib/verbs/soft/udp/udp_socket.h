// A UDP socket set up for RoCEv2: the wire has the bytes that the ICRC covers, and batches are one
// piece.
//
// Law: the socket is never connected and never fragments (IP_PMTUDISC_DO). Only then does the
// kernel send IPv4 identification 0 and, within one UDP_SEGMENT send, 0, 1, 2, ..., with which the
// ICRC is computed.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// RDMA NICs and Soft-RoCE send from ports from here on, to spread flows over paths, and listen on
// 4791 alone. Our bound ports are below.
constexpr uint16_t kFlowPorts = 0xc000;

struct UdpSocketOptions {
  uint32_t receive_buffer = 8 << 20;  // bytes asked for; the kernel may give less
  uint32_t send_buffer = 4 << 20;
  // True to bind a free flow port (kFlowPorts) and only send: another process has the port that
  // peers send to.
  bool sends_only = false;
};

struct UdpSocket {
  os::FileDescriptor fd;
  os::FileDescriptor raw;       // soft:raw: packets pass here, `fd` keeps the port (raw_socket.h)
  Address local;                // with the bound port
  uint16_t peers_port = 0;      // the port of peers that name none: the bound one, unless sends_only
  uint32_t interface = 0;       // index of the one with the address; 0: unknown
  bool on_loopback = false;     // true if that interface is loopback
  uint32_t scope = 0;           // the interface, if `local` is IPv6 link-local
  uint32_t link_mtu = 0;        // bytes of an IP packet, on the interface
  uint64_t receive_buffer = 0;  // bytes as the kernel counts them, with its overhead
  bool can_segment = false;     // true if the kernel has UDP_SEGMENT

  bool is_raw() const { return raw.valid(); }
  // Returns the descriptor that packets pass through.
  int wire() const { return is_raw() ? raw.get() : fd.get(); }
};

// Binds `address`, or only its IP (sends_only); port 0 is kRoceUdpPort, kFlowPorts and above are
// refused. Errors name the remedy. kAlreadyExists: the port is taken; kNotFound: no interface has
// the address.
absl::StatusOr<UdpSocket> OpenUdpSocket(const Address& address, const UdpSocketOptions& options);

// Opens a socket for packets to a multicast group, bound to the group at the UDP port of `port`,
// which gets only packets to its own address. Joins (IGMP, MLD) on the interface of `port`. Every
// device of the machine in the group gets each packet, even other users'. kUnimplemented: IPv6 on
// loopback, where the kernel has no multicast.
absl::StatusOr<UdpSocket> OpenGroupSocket(const UdpSocket& port, const Address& group, const UdpSocketOptions& options);

// Sizes a socket's buffers, beyond the system's limit if that is allowed. Returns the receive
// buffer's bytes, as the kernel counts them. Less than asked for is logged, under the name of
// `local`.
absl::StatusOr<uint64_t> SetUpBuffers(int fd, const UdpSocketOptions& options, const Address& local);

// Returns the largest path MTU (256 to 4096) whose packets fit an IP packet of `link_mtu` bytes
// with any headers; 0: none does.
uint32_t PathMtuFor(uint32_t link_mtu, bool is_ipv4);

// Writes the kernel's form of an address; returns its length, which depends on the family.
socklen_t ToSocketAddress(const Address& address, uint32_t scope, sockaddr_storage* out);
Address FromSocketAddress(const sockaddr_storage& address);

}  // namespace tokamak::verbs::soft
