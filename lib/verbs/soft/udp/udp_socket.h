// A UDP socket set up for RoCEv2: the wire has the bytes that the ICRC covers, and batches are one
// piece.
//
// Law: never connected, never fragments (IP_PMTUDISC_DO): only so the kernel's IPv4 identification
// is 0 and, within one UDP_SEGMENT send, 0, 1, 2, ..., as in the ICRC.
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
  // True: binds a free flow port (kFlowPorts), as another process has the port that peers send to.
  bool sends_only = false;
};

struct UdpSocket {
  os::FileDescriptor fd;
  os::FileDescriptor raw;       // soft:raw: packets pass here, `fd` keeps the port (raw_socket.h)
  Address local;                // with the bound port
  uint16_t peers_port = 0;      // of peers that name none: the bound one, unless sends_only
  uint32_t interface = 0;       // index; 0: unknown
  bool on_loopback = false;     // true if that is loopback
  uint32_t scope = 0;           // that, if `local` is IPv6 link-local
  uint32_t link_mtu = 0;        // bytes of an IP packet
  uint64_t receive_buffer = 0;  // bytes with the kernel's overhead
  bool can_segment = false;     // the kernel has UDP_SEGMENT

  bool is_raw() const { return raw.valid(); }
  // Returns the descriptor that packets pass through.
  int wire() const { return is_raw() ? raw.get() : fd.get(); }
};

// Binds `address`, or only its IP (sends_only); port 0 is kRoceUdpPort, kFlowPorts and above are
// refused. Errors name the remedy; kAlreadyExists: port taken; kNotFound: no interface has the
// address.
absl::StatusOr<UdpSocket> OpenUdpSocket(const Address& address, const UdpSocketOptions& options);

// Binds to the group at the UDP port of `port`, which gets packets to its own address only. Joins
// (IGMP, MLD) on its interface. Every member device of the machine gets each packet, other users'
// too. kUnimplemented: IPv6 on loopback, where the kernel has no multicast.
absl::StatusOr<UdpSocket> OpenGroupSocket(const UdpSocket& port, const Address& group, const UdpSocketOptions& options);

// Sizes buffers, beyond the system's limit if allowed. Returns the receive buffer's bytes, as the
// kernel counts. Less than asked for is logged, as of `local`.
absl::StatusOr<uint64_t> SetUpBuffers(int fd, const UdpSocketOptions& options, const Address& local);

// Returns the largest path MTU (256 to 4096) that fits `link_mtu` with any headers; 0: none.
uint32_t PathMtuFor(uint32_t link_mtu, bool is_ipv4);

// Returns the length, of the address's family.
socklen_t ToSocketAddress(const Address& address, uint32_t scope, sockaddr_storage* out);
Address FromSocketAddress(const sockaddr_storage& address);

}  // namespace tokamak::verbs::soft
