// The socket of soft:raw: IPv4 packets with headers of our own making, and received with theirs.
//
// A raw socket shows the identification, so the ICRC is checked in full; each queue pair has a UDP
// source port of its own, as RDMA NICs do; and nothing depends on how the kernel numbers packets.
// It costs CAP_NET_RAW and UDP_SEGMENT.
//
// The port is bound by a UDP socket as well, which gets nothing: so nobody else takes it, and the
// kernel does not answer our peers that nobody listens.
#pragma once

#include "absl/status/statusor.h"
#include "lib/verbs/soft/udp/udp_socket.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// As OpenUdpSocket, for an IPv4 address. kPermissionDenied without CAP_NET_RAW.
absl::StatusOr<UdpSocket> OpenRawSocket(const Address& address, const UdpSocketOptions& options);

}  // namespace tokamak::verbs::soft
