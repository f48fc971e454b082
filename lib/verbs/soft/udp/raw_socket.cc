#include "lib/verbs/soft/udp/raw_socket.h"

#include <linux/filter.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/udp/ipv4.h"

namespace tokamak::verbs::soft {
namespace {

constexpr int kRawOn = 1;
constexpr int kOff = 0;

bool Attach(int fd, sock_filter* code, size_t instructions) {
  sock_fprog program = {};
  program.len = static_cast<unsigned short>(instructions);
  program.filter = code;
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

bool LetNothingIn(int fd) {
  sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  return Attach(fd, code, std::size(code));
}

// Lets in UDP to this port without IP options, which the ICRC does not know.
bool LetPortIn(int fd, uint16_t port) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIpv4VersionAndLength, 0, 3),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kIpv4Header + 2),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  return Attach(fd, code, std::size(code));
}

absl::Status RawErrnoStatus(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<os::FileDescriptor> MakeRaw() {
  os::FileDescriptor raw(socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (raw.valid()) return raw;
  if (errno != EPERM && errno != EACCES) return RawErrnoStatus("cannot make a raw socket");
  return absl::PermissionDeniedError(
      "soft:raw needs the capability CAP_NET_RAW: run as root, or give it to the program (`setcap cap_net_raw+ep "
      "PROGRAM`, "
      "systemd: AmbientCapabilities=CAP_NET_RAW), or use soft:udp@IP, which needs none");
}

}  // namespace

absl::StatusOr<UdpSocket> OpenRawSocket(const Address& address, const UdpSocketOptions& options) {
  if (!address.is_ipv4()) {
    return absl::InvalidArgumentError(absl::StrCat("soft:raw is for IPv4; over IPv6 soft:udp@", address.ToString(),
                                                   " checks the whole ICRC, since IPv6 has no identification"));
  }
  absl::StatusOr<os::FileDescriptor> raw = MakeRaw();
  if (!raw.ok()) return raw.status();
  UdpSocketOptions none;
  none.receive_buffer = none.send_buffer = 0;
  absl::StatusOr<UdpSocket> result = OpenUdpSocket(address, none);
  if (!result.ok()) return result.status();

  // UDP_GRO would join packets for the raw socket, too.
  const int port = result->fd.get();
  if (!LetNothingIn(port) || setsockopt(port, SOL_UDP, UDP_GRO, &kOff, sizeof(kOff)) != 0) {
    return RawErrnoStatus("cannot keep the UDP port of a raw socket empty");
  }
  const int fd = raw->get();
  sockaddr_storage name;
  Address ip = result->local;
  ip.port = 0;
  const socklen_t length = ToSocketAddress(ip, 0, &name);
  if (!LetPortIn(fd, result->local.port) || setsockopt(fd, IPPROTO_IP, IP_HDRINCL, &kRawOn, sizeof(kRawOn)) != 0 ||
      bind(fd, reinterpret_cast<sockaddr*>(&name), length) != 0) {
    return RawErrnoStatus("cannot set up a raw socket");
  }
  const absl::StatusOr<uint64_t> receive_buffer = SetUpBuffers(fd, options, result->local);
  if (!receive_buffer.ok()) return receive_buffer.status();
  result->receive_buffer = *receive_buffer;
  setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &kRawOn, sizeof(kRawOn));  // uncounted without
  result->can_segment = false;
  result->raw = *std::move(raw);
  return result;
}

}  // namespace tokamak::verbs::soft
