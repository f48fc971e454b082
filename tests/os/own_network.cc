#include "tests/os/own_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::tests {
namespace {

absl::Status ErrnoStatus(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Root of its user namespace: so programs that it starts may do there what it may.
absl::Status EnterUserNamespace() {
  const uid_t user = getuid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no network namespace without CAP_SYS_ADMIN or user namespaces: ", std::strerror(errno)));
  }
  const os::FileDescriptor map(open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC));
  const std::string line = absl::StrCat("0 ", user, " 1");
  if (write(map.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) return ErrnoStatus("uid_map");
  return absl::OkStatus();
}

// The kernel looks for others with a new address, also on loopback, in a task of its own; until
// then nobody can bind to it. It tells nobody when that is over.
absl::Status AwaitUsable(const in6_addr& ip) {
  constexpr int kTries = 1000;
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = ip;
  for (int i = 0; i < kTries; ++i) {
    const os::FileDescriptor fd(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return absl::OkStatus();
    poll(nullptr, 0, 10);
  }
  return ErrnoStatus("the new address of lo cannot be used");
}

}  // namespace

absl::Status EnterOwnNetwork() {
  if (unshare(CLONE_NEWNET) != 0) {
    if (absl::Status s = EnterUserNamespace(); !s.ok()) return s;
  }
  const os::FileDescriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  if (ioctl(fd.get(), SIOCGIFFLAGS, &request) != 0) return ErrnoStatus("flags of lo");
  request.ifr_flags |= IFF_UP;
  if (ioctl(fd.get(), SIOCSIFFLAGS, &request) != 0) return ErrnoStatus("lo up");
  return absl::OkStatus();
}

absl::Status AddLoopbackIpv6(const std::string& ip) {
  const os::FileDescriptor fd(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return absl::UnavailableError("this machine has no IPv6");
  in6_ifreq request = {};
  request.ifr6_ifindex = static_cast<int>(if_nametoindex("lo"));
  request.ifr6_prefixlen = 128;
  if (inet_pton(AF_INET6, ip.c_str(), &request.ifr6_addr) != 1) return absl::InvalidArgumentError(ip);
  if (ioctl(fd.get(), SIOCSIFADDR, &request) != 0) return ErrnoStatus("address of lo");
  return AwaitUsable(request.ifr6_addr);
}

}  // namespace tokamak::tests
