#include "tests/bench/streams/kernel_streams.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/ibv/translation/socket_address.h"

namespace tokamak::bench {

namespace {

constexpr size_t kMostParts = 4;  // of one call

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

// Before it listens or connects: the window is settled with the connection. A size that may not be
// forced is left to the kernel, whose own choice grows beyond what others may ask for.
void Tune(int fd, const StreamOptions& options) {
  if (options.no_delay) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (options.buffer != 0) {
    const int size = static_cast<int>(options.buffer);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  }
}

class KernelStream final : public ByteStream {
 public:
  KernelStream(os::EpollLoop& loop, os::FileDescriptor socket, std::string name, bool connected)
      : loop_(loop), socket_(std::move(socket)), name_(std::move(name)), connected_(connected) {}

  void Start(ReadyCallback on_ready) override {
    on_ready_ = std::move(on_ready);
    watch_ = loop_.Watch(socket_.get(), EPOLLIN | EPOLLOUT, [this](uint32_t events) { OnEvents(events); });
  }

  void Want(Readiness wanted) override {
    const bool send = wanted.send || !connected_;
    watch_.SetEvents((wanted.receive ? EPOLLIN : 0u) | (send ? EPOLLOUT : 0u));
  }

  absl::StatusOr<size_t> Send(absl::Span<const absl::Span<const uint8_t>> parts) override {
    if (!status_.ok()) return status_;
    if (!connected_) return 0;
    CHECK_LE(parts.size(), kMostParts);
    std::array<iovec, kMostParts> vector{};
    for (size_t i = 0; i < parts.size(); ++i) vector[i] = {const_cast<uint8_t*>(parts[i].data()), parts[i].size()};
    msghdr message{};
    message.msg_iov = vector.data();
    message.msg_iovlen = parts.size();
    return Judged(sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL));
  }

  absl::StatusOr<size_t> Receive(absl::Span<uint8_t> into) override {
    if (!status_.ok()) return status_;
    const ssize_t got = recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (got == 0) return absl::UnavailableError(absl::StrCat(name_, " was closed by the peer"));
    return Judged(got);
  }

 private:
  absl::StatusOr<size_t> Judged(ssize_t done) const {
    if (done >= 0) return static_cast<size_t>(done);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
    return SystemError(name_);
  }

  void OnEvents(uint32_t events) {
    if (!connected_) FinishConnect();
    const bool broken = (events & EPOLLERR) != 0;
    const ReadyCallback ready = on_ready_;  // which may drop this
    ready({broken || (events & (EPOLLIN | EPOLLHUP)) != 0, broken || (events & EPOLLOUT) != 0});
  }

  void FinishConnect() {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    connected_ = true;
    if (error != 0) status_ = absl::UnavailableError(absl::StrCat(name_, " does not connect: ", strerror(error)));
  }

  os::EpollLoop& loop_;
  const os::FileDescriptor socket_;
  const std::string name_;
  bool connected_;
  absl::Status status_;  // of connecting
  ReadyCallback on_ready_;
  os::FdWatch watch_;
};

class KernelListener final : public StreamListener {
 public:
  KernelListener(os::EpollLoop& loop, os::FileDescriptor listener, const verbs::Address& address,
                 const StreamOptions& options, ByteStreams::AcceptCallback on_accept)
      : loop_(loop),
        listener_(std::move(listener)),
        address_(address),
        options_(options),
        on_accept_(std::move(on_accept)) {
    watch_ = loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
  }

  const verbs::Address& address() const override { return address_; }

 private:
  void Accept() {
    os::FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    Tune(socket.get(), options_);
    on_accept_(std::make_unique<KernelStream>(loop_, std::move(socket), "the stream of a peer", /*connected=*/true));
  }

  os::EpollLoop& loop_;
  const os::FileDescriptor listener_;
  const verbs::Address address_;
  const StreamOptions options_;
  const ByteStreams::AcceptCallback on_accept_;
  os::FdWatch watch_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StreamListener>> KernelStreams::Listen(const StreamOptions& options,
                                                                      AcceptCallback on_accept) {
  verbs::Address any = ip_;
  any.port = 0;
  verbs::ibv::SocketAddress at = verbs::ibv::ToSocketAddress(any);
  os::FileDescriptor listener(socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return SystemError("no socket");
  Tune(listener.get(), options);
  at.size = any.is_ipv4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (bind(listener.get(), at.get(), at.size) != 0 || listen(listener.get(), SOMAXCONN) != 0 ||
      getsockname(listener.get(), at.get(), &at.size) != 0) {
    return SystemError(absl::StrCat("cannot listen at ", any.ToString()));
  }
  const auto address = verbs::ibv::FromSocketAddress(at.get());
  CHECK(address.has_value());
  return std::make_unique<KernelListener>(loop_, std::move(listener), *address, options, std::move(on_accept));
}

absl::StatusOr<std::unique_ptr<ByteStream>> KernelStreams::Connect(const verbs::Address& peer,
                                                                   const StreamOptions& options) {
  const verbs::ibv::SocketAddress to = verbs::ibv::ToSocketAddress(peer);
  os::FileDescriptor socket(::socket(to.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return SystemError("no socket");
  Tune(socket.get(), options);
  // From this host's address, so that nodes of one machine use their own interfaces where it routes
  // so.
  verbs::Address own = ip_;
  own.port = 0;
  const verbs::ibv::SocketAddress from = verbs::ibv::ToSocketAddress(own);
  if (bind(socket.get(), from.get(), from.size) != 0) {
    return SystemError(absl::StrCat("no socket at ", own.ToString()));
  }
  if (connect(socket.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) {
    return SystemError(absl::StrCat("cannot connect to ", peer.ToString()));
  }
  return std::make_unique<KernelStream>(loop_, std::move(socket), absl::StrCat("the stream to ", peer.ToString()),
                                        /*connected=*/false);
}

}  // namespace tokamak::bench
