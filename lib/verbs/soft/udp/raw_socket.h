// The socket of soft:raw: IPv4 packets leave with headers of our own, and arrive with theirs.
//
// It shows the identification, so the ICRC is checked in full; each queue pair has its own UDP
// source port, as in RDMA NICs. It costs CAP_NET_RAW and UDP_SEGMENT.
//
// A UDP socket that gets nothing binds the port as well, so that nobody else takes it and the
// kernel does not tell peers that it is closed.
#pragma once

#include "absl/status/statusor.h"
#include "lib/verbs/soft/udp/udp_socket.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// Opens as OpenUdpSocket does, for an IPv4 address. kPermissionDenied: no CAP_NET_RAW.
absl::StatusOr<UdpSocket> OpenRawSocket(const Address& address, const UdpSocketOptions& options);

}  // namespace tokamak::verbs::soft
