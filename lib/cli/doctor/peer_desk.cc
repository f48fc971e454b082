#include "lib/cli/doctor/peer_desk.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli::doctor {

namespace {

using nlohmann::json;

constexpr int kDialect = 1;
constexpr int kBacklog = 16;
constexpr size_t kMaxDevice = 128;  // bytes of a device's name

base::Time Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return base::Time() + base::Seconds(now.tv_sec) + base::Nanoseconds(now.tv_nsec);
}

// A listening socket for both families, or for IPv4 alone where the machine has no IPv6.
absl::StatusOr<os::FileDescriptor> Bind(uint16_t port) {
  for (const int family : {AF_INET6, AF_INET}) {
    os::FileDescriptor socket_fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_fd.valid()) continue;
    const int on = 1, off = 0;
    setsockopt(socket_fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_storage name = {};
    socklen_t length = sizeof(sockaddr_in);
    name.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET6) {
      setsockopt(socket_fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
      length = sizeof(sockaddr_in6);
      reinterpret_cast<sockaddr_in6*>(&name)->sin6_port = htons(port);
    } else {
      reinterpret_cast<sockaddr_in*>(&name)->sin_port = htons(port);
    }
    if (bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0 &&
        listen(socket_fd.get(), kBacklog) == 0) {
      return socket_fd;
    }
    if (errno == EADDRINUSE) {
      return absl::AlreadyExistsError(
          absl::StrCat("TCP port ", port, " is taken: choose another with --port, on both sides"));
    }
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen on TCP port ", port));
}

uint16_t PortOf(int socket_fd) {
  sockaddr_storage name = {};
  socklen_t length = sizeof(name);
  if (getsockname(socket_fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
}

absl::Status AwaitReady(int fd, short events, base::Time until) {
  while (true) {
    const int64_t left = std::max<int64_t>((until - Now()).milliseconds(), 0);
    pollfd ready{fd, events, 0};
    const int count = poll(&ready, 1, static_cast<int>(left));
    if (count > 0) return absl::OkStatus();
    if (count < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    if (left == 0) return absl::DeadlineExceededError("no answer; is a firewall between the hosts?");
  }
}

absl::StatusOr<os::FileDescriptor> ConnectTo(const addrinfo& to, base::Time until) {
  os::FileDescriptor fd(socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "cannot make a socket");
  if (connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return absl::UnavailableError(std::strerror(errno));
  if (absl::Status status = AwaitReady(fd.get(), POLLOUT, until); !status.ok()) return status;
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return absl::UnavailableError(std::strerror(error));
  return fd;
}

absl::StatusOr<std::string> ReadToEnd(int fd, base::Time until) {
  std::string text(kMaxHello + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    if (absl::Status status = AwaitReady(fd, POLLIN, until); !status.ok()) return status;
    const ssize_t count = recv(fd, text.data() + size, text.size() - size, 0);
    if (count == 0) break;
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return absl::UnavailableError(std::strerror(errno));
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace

std::string PeerHello::Encode() const {
  return json({{"tokamak_doctor", kDialect},
               {"device", device},
               {"service", service.ToString()},
               {"active_mtu", active_mtu},
               {"netdev_mtu", netdev_mtu},
               {"cm", by_tcp ? "tcp" : "rdma"}})
             .dump() +
         "\n";
}

absl::StatusOr<PeerHello> PeerHello::Decode(const std::string& text) {
  const absl::Status stranger = absl::FailedPreconditionError("who answered is no tok doctor --listen of this version");
  if (text.size() > kMaxHello) return stranger;
  const json hello = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!hello.is_object()) return stranger;
  const auto number = [&](const char* key) -> uint32_t {
    const auto value = hello.find(key);
    if (value == hello.end() || !value->is_number_unsigned()) return 0;
    return static_cast<uint32_t>(std::min<uint64_t>(value->get<uint64_t>(), UINT32_MAX));
  };
  const auto text_of = [&](const char* key) -> std::string {
    const auto value = hello.find(key);
    return value == hello.end() || !value->is_string() ? "" : value->get<std::string>();
  };
  if (number("tokamak_doctor") != kDialect) return stranger;
  const auto service = verbs::Address::Parse(text_of("service"));
  if (!service.ok() || service->port == 0) return stranger;
  PeerHello peer;
  peer.device = text_of("device");
  // It is shown on a terminal, which control characters would lead astray.
  if (peer.device.size() > kMaxDevice || !std::all_of(peer.device.begin(), peer.device.end(), absl::ascii_isgraph)) {
    return stranger;
  }
  peer.service = *service;
  peer.active_mtu = number("active_mtu");
  peer.netdev_mtu = number("netdev_mtu");
  peer.by_tcp = text_of("cm") == "tcp";
  return peer;
}

absl::StatusOr<std::unique_ptr<PeerDesk>> PeerDesk::Open(os::EpollLoop& loop, uint16_t port, const PeerHello& hello) {
  auto socket_fd = Bind(port);
  if (!socket_fd.ok()) return socket_fd.status();
  std::unique_ptr<PeerDesk> desk(new PeerDesk(hello.Encode()));
  desk->socket_ = *std::move(socket_fd);
  desk->port_ = PortOf(desk->socket_.get());
  desk->watch_ = loop.Watch(desk->socket_.get(), EPOLLIN, [self = desk.get()](uint32_t) { self->Answer(); });
  return desk;
}

void PeerDesk::Answer() {
  const os::FileDescriptor caller(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!caller.valid()) return;  // it left in between
  // A new socket's buffer has room for it. Who does not get it asks again.
  [[maybe_unused]] const ssize_t sent = send(caller.get(), words_.data(), words_.size(), MSG_NOSIGNAL);
}

absl::StatusOr<PeerHello> AskPeer(const std::string& host, uint16_t port, base::Duration deadline) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) return absl::NotFoundError(absl::StrCat("no host ", host, ": ", gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  const base::Time until = Now() + deadline;
  absl::Status status;
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    const auto fd = ConnectTo(*to, until);
    status = fd.status();
    if (!fd.ok()) continue;
    const auto text = ReadToEnd(fd->get(), until);
    if (!text.ok()) return text.status();
    return PeerHello::Decode(*text);
  }
  return absl::Status(status.code(), absl::StrCat("TCP port ", port, " of ", host, ": ", status.message()));
}

}  // namespace tokamak::cli::doctor
