#include "lib/verbs/ibv/tcp/tcp_line.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/verbs/ibv/translation/errors.h"
#include "lib/verbs/ibv/translation/socket_address.h"

namespace tokamak::verbs::ibv {
namespace {

constexpr int kIdleSeconds = 5;
constexpr int kProbeSeconds = 2;
constexpr int kProbes = 3;
static_assert(base::Seconds(kIdleSeconds + kProbes * kProbeSeconds) == kLongestSilence);

void SetOption(int socket, int level, int option, int value) {
  PCHECK(setsockopt(socket, level, option, &value, sizeof(value)) == 0) << "socket option " << option;
}

void Prepare(int socket) {
  SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  // Unacknowledged bytes count as silence.
  SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(kLongestSilence.milliseconds()));
}

absl::Status LostStatus(int error) {
  if (error == ECONNREFUSED) return absl::AbortedError("nobody listens there");
  if (error == ECONNRESET || error == EPIPE) return absl::AbortedError("the peer closed the connection");
  return absl::UnavailableError(std::strerror(error));
}

}  // namespace

absl::StatusOr<os::FileDescriptor> TcpLine::Connect(const Address& from, const Address& to) {
  Address source = from;
  source.port = 0;
  const SocketAddress here = ToSocketAddress(source), there = ToSocketAddress(to);
  os::FileDescriptor socket(::socket(there.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return ErrnoStatus(errno, "socket");
  if (bind(socket.get(), here.get(), here.size) != 0)
    return ErrnoStatus(errno, absl::StrCat("bind ", source.ToString()));
  if (connect(socket.get(), there.get(), there.size) != 0 && errno != EINPROGRESS) {
    return ErrnoStatus(errno, absl::StrCat("connect ", to.ToString()));
  }
  return socket;
}

TcpLine::TcpLine(os::EpollLoop& loop, os::FileDescriptor socket, bool connecting, Owner& owner)
    : socket_(std::move(socket)), connecting_(connecting), owner_(owner) {
  Prepare(socket_.get());
  watch_ = loop.Watch(socket_.get(), connecting ? EPOLLOUT : EPOLLIN, [this](uint32_t events) { OnEvents(events); });
}

absl::Status TcpLine::Send(const TcpHello& hello) {
  const TcpHelloBytes bytes = EncodeTcpHello(hello);
  const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  return absl::UnavailableError(sent < 0 ? std::strerror(errno) : "the socket takes no more");
}

os::FileDescriptor TcpLine::Release() {
  watch_.Reset();
  return std::move(socket_);
}

void TcpLine::OnEvents(uint32_t) {
  if (!connecting_) return Read();
  int error = 0;
  socklen_t size = sizeof(error);
  PCHECK(getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0);
  if (error != 0) {
    watch_.Reset();
    return owner_.OnLineLost(LostStatus(error));
  }
  connecting_ = false;
  watch_.SetEvents(EPOLLIN);
  owner_.OnLineUp();
}

// Takes one message at most, since the owner may drop this; the loop calls again.
void TcpLine::Read() {
  const ssize_t got = recv(socket_.get(), bytes_.data() + size_, bytes_.size() - size_, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    const int error = got == 0 ? ECONNRESET : errno;
    watch_.Reset();
    return owner_.OnLineLost(LostStatus(error));
  }
  size_ += static_cast<size_t>(got);
  if (size_ < bytes_.size()) return;
  size_ = 0;
  const auto hello = DecodeTcpHello(bytes_);
  if (hello.ok()) return owner_.OnHello(*hello);
  watch_.Reset();
  owner_.OnLineLost(hello.status());
}

}  // namespace tokamak::verbs::ibv
