#include "lib/verbs/ibv/tcp/tcp_listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/verbs/ibv/translation/errors.h"
#include "lib/verbs/ibv/translation/socket_address.h"

namespace tokamak::verbs::ibv {
namespace {

constexpr int kBacklog = 128;

// Tries once, then closes the socket.
void SendReject(os::FileDescriptor socket, const TcpHello& ask, absl::Span<const uint8_t> private_data) {
  TcpHello reject;
  reject.kind = TcpHello::Kind::kReject;
  reject.link = ask.link;
  reject.SetPrivateData(private_data);
  const TcpHelloBytes bytes = EncodeTcpHello(reject);
  const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(bytes.size())) LOG(DEBUG) << "a peer is not there any more to be rejected";
}

}  // namespace

TcpRequest::TcpRequest(MakeTcpOffer make_offer, std::shared_ptr<std::atomic<size_t>> unanswered,
                       os::FileDescriptor socket, const Address& peer, const TcpHello& ask)
    : make_offer_(std::move(make_offer)),
      unanswered_(std::move(unanswered)),
      socket_(std::move(socket)),
      peer_(peer),
      ask_(ask) {
  unanswered_->fetch_add(1, std::memory_order_relaxed);
}

TcpRequest::~TcpRequest() { Reject({}); }

os::FileDescriptor TcpRequest::Answer() {
  Decided();
  return std::move(socket_);
}

void TcpRequest::Decided() {
  if (!decided_.exchange(true)) unanswered_->fetch_sub(1, std::memory_order_relaxed);
}

absl::StatusOr<std::unique_ptr<Connection>> TcpRequest::Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                               ConnectionHandler handler) {
  if (!socket_.valid()) return absl::FailedPreconditionError("this request has been answered");
  if (absl::Status status = CheckConnectOptions(options, kTcpCmPrivateData); !status.ok()) return status;
  auto held = HeldQueuePair::Take(queue_pair);
  if (!held.ok()) return held.status();
  auto connection =
      std::make_unique<TcpConnection>(make_offer_(options), *std::move(held), peer_, options, std::move(handler));
  if (absl::Status status = connection->Accept(Answer(), ask_); !status.ok()) return status;
  return connection;
}

void TcpRequest::Reject(absl::Span<const uint8_t> private_data) {
  if (socket_.valid()) SendReject(Answer(), ask_, private_data);
}

// A peer that connected and has not sent its request yet, or whose route is being searched.
class TcpListener::HalfOpen final : private TcpLine::Owner {
 public:
  HalfOpen(TcpListener& listener, os::FileDescriptor socket, const Address& peer)
      : listener_(listener),
        peer_(peer),
        line_(listener.loop_, std::move(socket), false, *this),
        deadline_(listener.loop_.RunAfter(kAskDeadline, [this] { listener_.Drop(this); })) {}

  const Address& peer() const { return peer_; }
  // Later bytes wait in the socket.
  void Heard() { socket_ = line_.Release(); }
  os::FileDescriptor Release() { return std::move(socket_); }

  // Waits for its turn if too many run.
  void Search(RouteSearches& routes, const TcpHello& ask) {
    search_ = routes.Start(listener_.loop_, ask.port,
                           [this, ask](const absl::Status& found) { listener_.OnRoute(this, ask, found); });
    if (search_ != nullptr) return;
    again_ = listener_.loop_.RunAfter(RouteSearches::kRetry, [this, &routes, ask] { Search(routes, ask); });
  }

 private:
  void OnLineUp() override {}
  void OnHello(const TcpHello& hello) override { listener_.OnAsk(this, hello); }
  void OnLineLost(const absl::Status& why) override {
    LOG(DEBUG) << peer_.ToString() << ": " << why;
    listener_.Drop(this);
  }

  TcpListener& listener_;
  const Address peer_;
  TcpLine line_;
  os::FileDescriptor socket_;  // once the request was read
  base::Timer deadline_;
  std::unique_ptr<RouteSearches::Search> search_;
  base::Timer again_;
};

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Listen(os::EpollLoop& loop, const Address& address,
                                                                 MakeTcpOffer make_offer,
                                                                 std::shared_ptr<RouteSearches> routes,
                                                                 RequestHandler handler) {
  SocketAddress where = ToSocketAddress(address);
  os::FileDescriptor socket(::socket(where.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return ErrnoStatus(errno, "socket");
  const int yes = 1;  // a port whose last connections the kernel still remembers is free
  PCHECK(setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
  if (bind(socket.get(), where.get(), where.size) != 0 || listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    if (error == EADDRINUSE) {
      return absl::AlreadyExistsError(
          absl::StrCat("listen at ", address.ToString(),
                       ": the port is taken; end the program that has it, or choose another port"));
    }
    return ErrnoStatus(error, absl::StrCat("listen at ", address.ToString()));
  }
  if (getsockname(socket.get(), where.get(), &where.size) != 0) return ErrnoStatus(errno, "getsockname");
  const std::optional<Address> bound = FromSocketAddress(where.get());
  CHECK(bound.has_value());
  return std::unique_ptr<TcpListener>(
      new TcpListener(loop, std::move(socket), *bound, std::move(make_offer), std::move(routes), std::move(handler)));
}

TcpListener::TcpListener(os::EpollLoop& loop, os::FileDescriptor socket, const Address& address,
                         MakeTcpOffer make_offer, std::shared_ptr<RouteSearches> routes, RequestHandler handler)
    : loop_(loop),
      socket_(std::move(socket)),
      address_(address),
      make_offer_(std::move(make_offer)),
      routes_(std::move(routes)),
      handler_(std::move(handler)),
      unanswered_(std::make_shared<std::atomic<size_t>>(0)),
      watch_(loop.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { AcceptSome(); })) {}

TcpListener::~TcpListener() = default;

void TcpListener::AcceptSome() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    SocketAddress from;
    from.size = sizeof(from.storage);
    os::FileDescriptor socket(accept4(socket_.get(), from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        PLOG(WARNING) << "accept at " << address_.ToString();
        watch_.SetEvents(0);
        retry_ = loop_.RunAfter(kRetryAccept, [this] { watch_.SetEvents(EPOLLIN); });
      }
      return;  // EAGAIN: no more; other errors are of a peer that is gone
    }
    const std::optional<Address> peer = FromSocketAddress(from.get());
    if (!peer || !HasRoomFor(*peer)) continue;
    half_open_.push_back(std::make_unique<HalfOpen>(*this, std::move(socket), *peer));
  }
}

bool TcpListener::HasRoomFor(const Address& peer) const {
  if (half_open_.size() >= kMaxHalfOpen) return false;
  const auto of_one = std::count_if(half_open_.begin(), half_open_.end(),
                                    [&peer](const auto& half_open) { return half_open->peer().ip == peer.ip; });
  return static_cast<size_t>(of_one) < kMaxHalfOpenOfOne;
}

void TcpListener::Drop(HalfOpen* half_open) {
  half_open_.remove_if([half_open](const std::unique_ptr<HalfOpen>& one) { return one.get() == half_open; });
}

void TcpListener::OnAsk(HalfOpen* half_open, const TcpHello& ask) {
  if (ask.kind != TcpHello::Kind::kAsk) return Drop(half_open);
  half_open->Heard();
  if (routes_ == nullptr || ask.link != LinkKind::kRoce) return Present(half_open, ask);
  half_open->Search(*routes_, ask);
}

void TcpListener::OnRoute(HalfOpen* half_open, const TcpHello& ask, const absl::Status& found) {
  if (found.ok()) return Present(half_open, ask);
  LOG(WARNING) << "rejected " << half_open->peer().ToString() << ": " << found;
  SendReject(half_open->Release(), ask, {});
  Drop(half_open);
}

void TcpListener::Present(HalfOpen* half_open, const TcpHello& ask) {
  os::FileDescriptor socket = half_open->Release();
  const Address peer = half_open->peer();
  Drop(half_open);
  if (unanswered_->load(std::memory_order_relaxed) >= kMaxUnanswered) return SendReject(std::move(socket), ask, {});
  const base::Lifetime::Watch watch = lifetime_.Watched();
  RequestHandler handler = std::move(handler_);  // it may drop this
  handler(std::make_unique<TcpRequest>(make_offer_, unanswered_, std::move(socket), peer, ask));
  if (watch.over()) return;
  handler_ = std::move(handler);
}

}  // namespace tokamak::verbs::ibv
