#include "lib/directory/redis/server/dialer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tokamak::directory::redis {
namespace {

struct SocketAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
};

SocketAddress UnixAddress(const std::string& path) {
  SocketAddress address;
  auto& unix_address = reinterpret_cast<sockaddr_un&>(address.bytes);
  unix_address.sun_family = AF_UNIX;
  path.copy(unix_address.sun_path, sizeof(unix_address.sun_path) - 1);
  address.size = sizeof(sockaddr_un);
  return address;
}

SocketAddress IpAddress(const std::string& ip, uint16_t port) {
  SocketAddress address;
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* info = nullptr;
  if (getaddrinfo(ip.c_str(), absl::StrCat(port).c_str(), &hints, &info) != 0) return address;
  std::memcpy(&address.bytes, info->ai_addr, info->ai_addrlen);
  address.size = info->ai_addrlen;
  freeaddrinfo(info);
  return address;
}

void SetTcpOptions(int socket) {
  const int on = 1;
  // Failures are harmless: these only save time.
  (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  (void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  const int idle_seconds = 15, interval_seconds = 5, probes = 3;
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof(interval_seconds));
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

}  // namespace

class Dialer::Attempt final : public base::Handle {
 public:
  Attempt(Dialer& dialer, Place place, base::Duration deadline, Callback done)
      : loop_(dialer.loop_),
        tls_(dialer.tls_.get()),
        place_(std::move(place)),
        deadline_(deadline),
        done_(std::move(done)) {
    if (!place_.path.empty()) {
      next_ = loop_.Post([this] { ConnectTo("", UnixAddress(place_.path)); });
      return;
    }
    timer_ = loop_.RunAfter(deadline_, [this] {
      lookup_.reset();
      Fail(
          absl::StrCat(place_.address.host, ": its address was not found in time; see whether the DNS server answers"));
    });
    lookup_ = dialer.names_.Lookup(place_.address.host, [this](absl::StatusOr<os::NameLookup::Addresses> addresses) {
      timer_.Cancel();
      if (!addresses.ok()) {
        return Fail(absl::StrCat(place_.address.host, ": ", addresses.status().message(),
                                 "; correct the host's name in --directory, or its entry in DNS or /etc/hosts"));
      }
      addresses_ = *std::move(addresses);
      ConnectToNext();
    });
  }

 private:
  void ConnectToNext() {
    if (tried_ == addresses_.size()) return Fail(absl::StrJoin(troubles_, "; "));
    const std::string& ip = addresses_[tried_++];
    ConnectTo(ip, IpAddress(ip, place_.address.port));
  }

  void ConnectTo(const std::string& ip, const SocketAddress& address) {
    ip_ = ip;
    os::FileDescriptor socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return TryNext(strerror(errno));
    if (!ip.empty()) SetTcpOptions(socket.get());
    const int connected = connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size);
    // EAGAIN: a Unix socket whose server has no room.
    if (connected != 0 && errno != EINPROGRESS) return TryNext(WithRemedy(errno));
    timer_ = loop_.RunAfter(deadline_, [this] { TryNext(TooLate()); });
    stream_ = PlainStream(std::move(socket));
    if (tls_ != nullptr) stream_ = tls_->Wrap(std::move(stream_), place_.address.host);
    watch_ = loop_.Watch(stream_->descriptor(), EPOLLOUT, [this](uint32_t) { Step(); });
  }

  void Step() {
    if (!connected_) {
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(stream_->descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return TryNext(WithRemedy(error));
      connected_ = true;
    }
    const absl::StatusOr<bool> done = stream_->Shake();
    if (!done.ok()) return TryNext(done.status().message());
    if (!*done) return watch_.SetEvents(EPOLLIN | (stream_->awaits_room() ? EPOLLOUT : 0u));
    timer_.Cancel();
    watch_.Reset();
    const Callback answer = std::move(done_);
    answer(std::move(stream_));  // may drop us
  }

  static std::string WithRemedy(int error) {
    const bool nobody = error == ECONNREFUSED || error == ENOENT;
    return absl::StrCat(strerror(error), nobody ? "; start it, or correct the address" : "");
  }

  std::string TooLate() const {
    if (!connected_) return "no connection in time; see whether a firewall is in the way";
    return "no TLS handshake in time; does the server speak TLS on this port? Without it: redis:// in place of "
           "rediss://";
  }

  void TryNext(absl::string_view why) {
    troubles_.push_back(addresses_.size() > 1 ? absl::StrCat(ip_, ": ", why) : std::string(why));
    timer_.Cancel();
    watch_.Reset();
    stream_.reset();
    connected_ = false;
    next_ = loop_.Post([this] { ConnectToNext(); });
  }

  void Fail(const std::string& why) {
    const Callback answer = std::move(done_);
    answer(absl::UnavailableError(why));  // may drop us
  }

  os::EpollLoop& loop_;
  const Tls* const tls_;
  const Place place_;
  const base::Duration deadline_;
  Callback done_;
  os::NameLookup::Addresses addresses_;
  size_t tried_ = 0;
  std::string ip_;  // being tried
  std::vector<std::string> troubles_;
  std::unique_ptr<Stream> stream_;
  bool connected_ = false;
  os::FdWatch watch_;  // dropped before the stream
  base::Timer timer_;
  base::Timer next_;
  base::Pending lookup_;
};

base::Pending Dialer::Dial(const Place& place, base::Duration deadline, Callback done) {
  return std::make_unique<Attempt>(*this, place, deadline, std::move(done));
}

}  // namespace tokamak::directory::redis
