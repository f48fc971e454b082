#include "lib/verbs/soft/udp/udp_socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/log.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {
namespace {

constexpr int kOn = 1;
constexpr int kFlowTries = 100;

bool Set(int fd, int level, int option, int value) { return setsockopt(fd, level, option, &value, sizeof(value)) == 0; }

absl::Status ErrnoStatus(absl::StatusCode code, const std::string& what) {
  return absl::Status(code, absl::StrCat(what, ": ", std::strerror(errno)));
}

std::string IpText(const Address& address) {
  char text[INET6_ADDRSTRLEN];
  if (address.is_ipv4()) return inet_ntop(AF_INET, &address.ip[12], text, sizeof(text));
  return inet_ntop(AF_INET6, address.ip.data(), text, sizeof(text));
}

struct Interfaces {
  Interfaces() {
    if (getifaddrs(&first) != 0) first = nullptr;
  }
  ~Interfaces() {
    if (first != nullptr) freeifaddrs(first);
  }
  Interfaces(const Interfaces&) = delete;
  Interfaces& operator=(const Interfaces&) = delete;

  ifaddrs* first = nullptr;
};

bool HasIp(const ifaddrs& entry) {
  return entry.ifa_addr != nullptr && (entry.ifa_addr->sa_family == AF_INET || entry.ifa_addr->sa_family == AF_INET6);
}

Address IpOf(const ifaddrs& entry) {
  sockaddr_storage storage = {};
  std::memcpy(&storage, entry.ifa_addr,
              entry.ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  Address address = FromSocketAddress(storage);
  address.port = 0;
  return address;
}

// Returns the interface with the address. All of 127.0.0.0/8 is local, though lo lists one address.
const ifaddrs* FindInterface(const Interfaces& interfaces, const Address& address) {
  Address wanted = address;
  wanted.port = 0;
  const bool loopback = address.is_ipv4() && address.ip[12] == 127;
  for (const ifaddrs* entry = interfaces.first; entry != nullptr; entry = entry->ifa_next) {
    if (!HasIp(*entry)) continue;
    if (IpOf(*entry) == wanted || (loopback && (entry->ifa_flags & IFF_LOOPBACK) != 0)) return entry;
  }
  return nullptr;
}

std::string LocalIps(const Interfaces& interfaces) {
  std::set<std::string> texts;
  for (const ifaddrs* entry = interfaces.first; entry != nullptr; entry = entry->ifa_next) {
    if (HasIp(*entry)) texts.insert(IpText(IpOf(*entry)));
  }
  return absl::StrJoin(texts, ", ");
}

uint32_t LinkMtu(int fd, const char* interface) {
  ifreq request = {};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  if (ioctl(fd, SIOCGIFMTU, &request) != 0) return 1500;
  return static_cast<uint32_t>(request.ifr_mtu);
}

absl::Status BindError(const Address& local, const Interfaces& interfaces) {
  const std::string port = absl::StrCat("UDP port ", local.port, " of ", IpText(local));
  if (errno == EADDRINUSE) {
    const bool kernel_roce = local.port == kRoceUdpPort && access("/sys/module/rdma_rxe", F_OK) == 0;
    return absl::AlreadyExistsError(absl::StrCat(
        port, " is taken: ",
        kernel_roce ? "rdma_rxe, the kernel's Soft-RoCE, is loaded and owns it on every address; unload it, use it as "
                      "the device instead, or choose another port (then both sides must)"
                    : "another program has it (`ss -lunp` shows which), or the kernel's Soft-RoCE in another "
                      "container of this network namespace (`rdma link`); stop it or choose another port"));
  }
  if (errno == EADDRNOTAVAIL) {
    return absl::NotFoundError(absl::StrCat("no interface of this machine has the address ", IpText(local), "; it has ",
                                            LocalIps(interfaces)));
  }
  return ErrnoStatus(absl::StatusCode::kUnavailable, absl::StrCat("cannot bind ", port));
}

// Makes the identification known, and forbids fragments.
absl::Status SetUpWire(int fd, bool is_ipv4) {
  if (is_ipv4) {
    if (!Set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)) {
      return ErrnoStatus(absl::StatusCode::kUnavailable, "cannot set IP_MTU_DISCOVER");
    }
    return absl::OkStatus();
  }
  // The kernel's Soft-RoCE sends UDP checksum 0 over IPv6; without this such packets would be
  // dropped unseen.
  if (!Set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) || !Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, kOn) ||
      !Set(fd, SOL_UDP, UDP_NO_CHECK6_RX, kOn)) {
    return ErrnoStatus(absl::StatusCode::kUnavailable, "cannot set up an IPv6 socket");
  }
  return absl::OkStatus();
}

absl::StatusOr<UdpSocket> MakeSocket(const Address& local) {
  UdpSocket result;
  result.local = local;
  result.peers_port = local.port;
  const int family = local.is_ipv4() ? AF_INET : AF_INET6;
  result.fd = os::FileDescriptor(socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!result.fd.valid()) return ErrnoStatus(absl::StatusCode::kUnavailable, "cannot make a UDP socket");
  if (absl::Status status = SetUpWire(result.fd.get(), local.is_ipv4()); !status.ok()) return status;
  return result;
}

bool Bind(const UdpSocket& socket, uint32_t scope) {
  sockaddr_storage name;
  const socklen_t length = ToSocketAddress(socket.local, scope, &name);
  return bind(socket.fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0;
}

bool BindFlow(UdpSocket* socket) {
  std::random_device random;
  for (int tries = 0; tries < kFlowTries; ++tries) {
    socket->local.port = static_cast<uint16_t>(kFlowPorts + random() % (UINT16_MAX - kFlowPorts));
    if (Bind(*socket, socket->scope)) return true;
    if (errno != EADDRINUSE) return false;
  }
  return false;
}

absl::Status SetUpReceiving(UdpSocket* socket, const UdpSocketOptions& options) {
  const int fd = socket->fd.get();
  const absl::StatusOr<uint64_t> receive_buffer = SetUpBuffers(fd, options, socket->local);
  if (!receive_buffer.ok()) return receive_buffer.status();
  socket->receive_buffer = *receive_buffer;
  Set(fd, SOL_UDP, UDP_GRO, kOn);         // slower without
  Set(fd, SOL_SOCKET, SO_RXQ_OVFL, kOn);  // uncounted without
  // Without it ECN marks are not seen, and peers are not notified.
  if (socket->local.is_ipv4()) {
    Set(fd, IPPROTO_IP, IP_RECVTOS, kOn);
  } else {
    Set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, kOn);
  }
  return absl::OkStatus();
}

// Returns the multicast interface; on IPv4 with its address.
ip_mreqn InterfaceOf(const UdpSocket& port, const Address& group) {
  ip_mreqn request = {};
  std::memcpy(&request.imr_multiaddr, &group.ip[12], 4);
  std::memcpy(&request.imr_address, &port.local.ip[12], 4);
  request.imr_ifindex = static_cast<int>(port.interface);
  return request;
}

// Leaves the choice to the routing table on failure.
void SendGroupsFrom(const UdpSocket& port) {
  if (!port.local.is_ipv4()) {
    Set(port.fd.get(), IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(port.interface));
    return;
  }
  const ip_mreqn from = InterfaceOf(port, Address());
  setsockopt(port.fd.get(), IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof(from));
}

bool JoinGroup(const UdpSocket& socket, const UdpSocket& port) {
  if (socket.local.is_ipv4()) {
    const ip_mreqn request = InterfaceOf(port, socket.local);
    return setsockopt(socket.fd.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) == 0;
  }
  ipv6_mreq request = {};
  std::memcpy(&request.ipv6mr_multiaddr, socket.local.ip.data(), 16);
  request.ipv6mr_interface = port.interface;
  return setsockopt(socket.fd.get(), IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof(request)) == 0;
}

}  // namespace

absl::StatusOr<UdpSocket> OpenUdpSocket(const Address& address, const UdpSocketOptions& options) {
  if (address.is_unspecified()) {
    return absl::InvalidArgumentError(
        absl::StrCat(IpText(address), " stands for every address, but the ICRC of a packet covers one: name it"));
  }
  if (address.port >= kFlowPorts) {
    return absl::InvalidArgumentError(
        absl::StrCat("UDP port ", address.port, " is one that RDMA NICs send from; choose one below ", kFlowPorts));
  }
  absl::StatusOr<UdpSocket> result = MakeSocket(WithRocePort(address));
  if (!result.ok()) return result;
  const Interfaces interfaces;
  const ifaddrs* interface = FindInterface(interfaces, address);
  if (interface != nullptr) {
    result->interface = if_nametoindex(interface->ifa_name);
    result->on_loopback = (interface->ifa_flags & IFF_LOOPBACK) != 0;
  }
  if (address.is_link_local()) result->scope = result->interface;
  if (!(options.sends_only ? BindFlow(&*result) : Bind(*result, result->scope))) {
    return BindError(result->local, interfaces);
  }
  const int fd = result->fd.get();
  result->link_mtu = interface != nullptr ? LinkMtu(fd, interface->ifa_name) : 1500;
  if (PathMtuFor(result->link_mtu, address.is_ipv4()) == 0) {
    return absl::FailedPreconditionError(absl::StrCat("the interface of ", IpText(address), " has MTU ",
                                                      result->link_mtu, ": too small for RoCE's smallest packets"));
  }
  if (absl::Status s = SetUpReceiving(&*result, options); !s.ok()) return s;
  result->can_segment = Set(fd, SOL_UDP, UDP_SEGMENT, 0);
  SendGroupsFrom(*result);
  return result;
}

absl::StatusOr<UdpSocket> OpenGroupSocket(const UdpSocket& port, const Address& group,
                                          const UdpSocketOptions& options) {
  if (port.on_loopback && !group.is_ipv4()) {
    return absl::UnimplementedError("the loopback interface carries no multicast of IPv6; other interfaces do");
  }
  Address local = group;
  local.port = port.peers_port;
  absl::StatusOr<UdpSocket> result = MakeSocket(local);
  if (!result.ok()) return result;
  // The first lets several devices of the machine be in a group; the second keeps out packets from
  // other interfaces.
  const int fd = result->fd.get();
  const bool is_ipv4 = group.is_ipv4();
  const bool alone = is_ipv4 ? Set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0) : Set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  if (!Set(fd, SOL_SOCKET, SO_REUSEADDR, kOn) || !alone) {
    return ErrnoStatus(absl::StatusCode::kUnavailable, "cannot set up a socket for a multicast group");
  }
  if (!Bind(*result, port.interface)) {
    return ErrnoStatus(absl::StatusCode::kUnavailable,
                       absl::StrCat("cannot bind UDP port ", local.port, " of ", IpText(local)));
  }
  if (!JoinGroup(*result, port)) {
    const bool full = errno == ENOBUFS || errno == ENOMEM;
    return ErrnoStatus(full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable,
                       absl::StrCat("cannot join ", IpText(group), " on the interface of ", IpText(port.local)));
  }
  if (absl::Status s = SetUpReceiving(&*result, options); !s.ok()) return s;
  return result;
}

absl::StatusOr<uint64_t> SetUpBuffers(int fd, const UdpSocketOptions& options, const Address& local) {
  const int receive = static_cast<int>(options.receive_buffer);
  const int send = static_cast<int>(options.send_buffer);
  if (!Set(fd, SOL_SOCKET, SO_RCVBUFFORCE, receive)) Set(fd, SOL_SOCKET, SO_RCVBUF, receive);
  if (!Set(fd, SOL_SOCKET, SO_SNDBUFFORCE, send)) Set(fd, SOL_SOCKET, SO_SNDBUF, send);
  int given = 0;
  socklen_t size = sizeof(given);
  if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &size) != 0) {
    return ErrnoStatus(absl::StatusCode::kUnavailable, "cannot read SO_RCVBUF");
  }
  if (given < receive) {
    LOG(WARNING) << "the kernel gave UDP port " << local.port << " of " << IpText(local) << " a receive buffer of "
                 << given << " bytes; READs are slower than with " << options.receive_buffer
                 << " (sysctl net.core.rmem_max)";
  }
  return static_cast<uint64_t>(given);
}

uint32_t PathMtuFor(uint32_t link_mtu, bool is_ipv4) {
  // The longest headers that come with a payload: RETH and immediate.
  const uint32_t headers = (is_ipv4 ? 20 : 40) + 8 + HeaderLength(PacketOpcode::kWriteOnlyWithImm) + kIcrcLength;
  for (uint32_t mtu = kMaxMtu; mtu >= kMinMtu; mtu /= 2) {
    if (mtu + headers <= link_mtu) return mtu;
  }
  return 0;
}

socklen_t ToSocketAddress(const Address& address, uint32_t scope, sockaddr_storage* out) {
  if (address.is_ipv4()) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, &address.ip[12], 4);
    std::memcpy(out, &in, sizeof(in));
    return sizeof(in);
  }
  sockaddr_in6 in6 = {};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(address.port);
  std::memcpy(&in6.sin6_addr, address.ip.data(), 16);
  if (address.is_link_local() || address.is_multicast()) in6.sin6_scope_id = scope;
  std::memcpy(out, &in6, sizeof(in6));
  return sizeof(in6);
}

Address FromSocketAddress(const sockaddr_storage& address) {
  Address result;
  if (address.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address, sizeof(in));
    result.ip[10] = result.ip[11] = 0xff;
    std::memcpy(&result.ip[12], &in.sin_addr, 4);
    result.port = ntohs(in.sin_port);
  } else {
    sockaddr_in6 in6;
    std::memcpy(&in6, &address, sizeof(in6));
    std::memcpy(result.ip.data(), &in6.sin6_addr, 16);
    result.port = ntohs(in6.sin6_port);
  }
  return result;
}

}  // namespace tokamak::verbs::soft
