#include "lib/daemon/watch/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/text/printable.h"
#include "lib/daemon/watch/http_request.h"

namespace tokamak::daemon {

namespace {

constexpr int kHttpBacklog = 512;
constexpr int kHttpAcceptsPerTurn = 16;
// Pause without free descriptors.
constexpr base::Duration kHttpAcceptRetry = base::Milliseconds(100);
// Bytes shown of a refused Host.
constexpr size_t kHostShown = 256;

// Pages use only this server's resources, are not embedded, and not cached.
constexpr char kHeaders[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

std::string ToBytes(const HttpAnswer& answer, bool with_body = true) {
  return absl::StrCat("HTTP/1.1 ", answer.status, " ", ReasonOf(answer.status), "\r\nContent-Type: ", answer.type,
                      "\r\nContent-Length: ", answer.body.size(), "\r\n", kHeaders, "\r\n",
                      with_body ? answer.body : "");
}

HttpAnswer Misdirected(const std::string& host) {
  return {421, "text/plain; charset=utf-8",
          absl::StrCat(base::Printable(host.substr(0, kHostShown)),
                       " is not known as a name of this machine: ask by its host name or address, or start tokd with "
                       "--http-host NAME\n")};
}

std::string AnswerTo(const HttpRequest& request, const HttpServer::Handler& handler) {
  const bool is_head = request.method == "HEAD";
  if (!is_head && request.method != "GET") return ToBytes({405, "text/plain; charset=utf-8", "only GET\n"});
  return ToBytes(handler(request.path), !is_head);
}

// As the kernel's, without the port.
std::string AddressOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
    return std::string(reinterpret_cast<const char*>(&address), sizeof(address));
  }
  // A host chooses among its network's 64 bits.
  const auto& address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&address);
  return std::string(reinterpret_cast<const char*>(&address), is_v4 ? sizeof(address) : sizeof(address) / 2);
}

// Not valid: see errno.
os::FileDescriptor ListenAt(const base::HostPort& address) {
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &wanted, &found) != 0) {
    errno = EADDRNOTAVAIL;
    return os::FileDescriptor();
  }
  os::FileDescriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  const bool listens = socket.valid() && setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
                       bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                       listen(socket.get(), kHttpBacklog) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (!listens) socket.Close();
  errno = error;
  return socket;
}

uint16_t PortOf(const os::FileDescriptor& socket) {
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(bound).sin_port
                                          : reinterpret_cast<const sockaddr_in6&>(bound).sin6_port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const base::HostPort& address,
                                                              std::shared_ptr<const HttpHosts> hosts, Handler handler) {
  os::FileDescriptor listener = ListenAt(address);
  if (!listener.valid()) {
    return absl::InvalidArgumentError(absl::StrCat("--http: cannot listen at ", address.ToString(), " (",
                                                   std::strerror(errno),
                                                   "): give an address of this host, and a port that is free"));
  }
  const base::HostPort taken = {address.host, PortOf(listener)};
  return std::unique_ptr<HttpServer>(new HttpServer(taken, std::move(listener), std::move(hosts), std::move(handler)));
}

HttpServer::HttpServer(const base::HostPort& address, os::FileDescriptor listener,
                       std::shared_ptr<const HttpHosts> hosts, Handler handler)
    : address_(address), hosts_(std::move(hosts)), thread_({"tokamak-http"}), listener_(std::move(listener)) {
  thread_.CallOn([&] {
    workers_ = std::make_unique<HttpWorkers>(
        thread_.loop(), kThreads,
        [handler = std::move(handler)](const HttpRequest& request) { return AnswerTo(request, handler); },
        [this](uint64_t number, std::string answer) { Answer(number, std::move(answer)); });
    listener_watch_ = thread_.loop().Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
  });
}

HttpServer::~HttpServer() {
  thread_.CallOn([&] {
    retry_.Cancel();
    listener_watch_.Reset();
    workers_.reset();
    connections_.clear();
  });
}

std::string HttpServer::url() const { return absl::StrCat("http://", address_.ToString(), "/"); }

void HttpServer::Accept() {
  for (int i = 0; i < kHttpAcceptsPerTurn; ++i) {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    os::FileDescriptor socket(
        accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      listener_watch_.SetEvents(0);
      retry_ = thread_.loop().RunAfter(kHttpAcceptRetry, [this] { listener_watch_.SetEvents(EPOLLIN); });
      return;
    }
    std::string from = AddressOf(peer);
    if (!MakeRoom(from)) continue;
    const uint64_t number = ++last_number_;
    Connection& connection = connections_[number];
    connection.socket = std::move(socket);
    connection.from = std::move(from);
    connection.deadline = thread_.loop().RunAfter(kRequestDeadline, [this, number] { connections_.erase(number); });
    connection.watch = thread_.loop().Watch(connection.socket.get(), EPOLLIN,
                                            [this, number](uint32_t events) { OnEvents(number, events); });
  }
}

// False: all that count are being answered.
bool HttpServer::MakeRoom(const std::string& from) {
  const auto of_it = std::count_if(connections_.begin(), connections_.end(),
                                   [&](const auto& entry) { return entry.second.from == from; });
  const bool is_full_of_it = static_cast<size_t>(of_it) >= kMaxConnectionsOfAddress;
  if (!is_full_of_it && connections_.size() < kMaxConnections) return true;
  const auto oldest = std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
    return !entry.second.is_asking && (!is_full_of_it || entry.second.from == from);
  });
  if (oldest == connections_.end()) return false;
  connections_.erase(oldest);
  return true;
}

void HttpServer::OnEvents(uint64_t number, uint32_t events) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  // Hung up: its place is kept until its request ends, which bounds requests.
  if (connection.is_asking) return connection.watch.Reset();
  if (!connection.answer.empty()) return Write(number, connection);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) Read(number, connection);
}

void HttpServer::Read(uint64_t number, Connection& connection) {
  std::array<char, 4096> bytes;
  const ssize_t size = recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
  if (size < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return;
  if (size <= 0) {
    connections_.erase(number);
    return;
  }
  if (connection.is_leaving) return;
  connection.come.append(bytes.data(), static_cast<size_t>(size));
  const size_t end = EndOfHead(connection.come);
  if (end == std::string::npos && connection.come.size() < kMaxRequestBytes) return;
  if (end == std::string::npos || end > kMaxRequestBytes) {
    return Answer(number, ToBytes({431, "text/plain; charset=utf-8", "the request is too long\n"}));
  }
  std::optional<HttpRequest> request = HttpRequest::Parse(connection.come);
  connection.come = std::string();
  if (!request) return Answer(number, ToBytes({400, "text/plain; charset=utf-8", "that is no request\n"}));
  if (request->host && !hosts_->Allows(*request->host)) return Answer(number, ToBytes(Misdirected(*request->host)));
  connection.is_asking = true;
  connection.deadline.Cancel();  // the handler has its own
  connection.watch.SetEvents(0);
  workers_->Ask(number, *std::move(request));
}

void HttpServer::Answer(uint64_t number, std::string answer) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  connection.is_asking = false;
  connection.answer = std::move(answer);
  connection.deadline = thread_.loop().RunAfter(kRequestDeadline, [this, number] { connections_.erase(number); });
  Write(number, connection);
}

void HttpServer::Write(uint64_t number, Connection& connection) {
  while (!connection.answer.empty()) {
    const ssize_t sent =
        send(connection.socket.get(), connection.answer.data(), connection.answer.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return connection.watch.SetEvents(EPOLLOUT);
    if (sent < 0) {
      connections_.erase(number);
      return;
    }
    connection.answer.erase(0, static_cast<size_t>(sent));
  }
  // Not closed yet: other input could make the kernel discard unsent bytes.
  connection.is_leaving = true;
  shutdown(connection.socket.get(), SHUT_WR);
  connection.watch.SetEvents(EPOLLIN);
}

}  // namespace tokamak::daemon
