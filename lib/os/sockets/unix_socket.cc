#include "lib/os/sockets/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/os/sockets/unix_address.h"

namespace tokamak::os {
namespace {

constexpr int kAcceptsPerTurn = 16;
// How long a process without free descriptors waits before it tries again.
constexpr base::Duration kAcceptRetry = base::Milliseconds(100);

class DeadlineClock final {
 public:
  explicit DeadlineClock(base::Duration deadline)
      : end_(Clock::now() + std::chrono::nanoseconds(std::max<int64_t>(0, deadline.nanoseconds()))) {}

  base::Duration left() const {
    return base::Nanoseconds(std::max<int64_t>(0, std::chrono::nanoseconds(end_ - Clock::now()).count()));
  }

  // Waits for an event on `fd`; returns false at the deadline. Returns true, too, and sets
  // `interrupted`, when `interrupt` is readable.
  bool Await(int fd, short events, int interrupt = -1, bool* interrupted = nullptr) const {
    for (;;) {
      const int64_t left = this->left().nanoseconds();
      const timespec wait = {left / 1'000'000'000, left % 1'000'000'000};
      pollfd polled[] = {{fd, events, 0}, {interrupt, POLLIN, 0}};
      const int ready = ppoll(polled, interrupt < 0 ? 1 : 2, &wait, nullptr);
      if (ready > 0 && interrupted != nullptr) *interrupted = polled[1].revents != 0;
      if (ready > 0) return true;
      if (ready == 0) return false;
      if (errno != EINTR) return true;  // the next call on `fd` reports the error
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end_;
};

}  // namespace

PeerCredentials PeerOf(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {};
  return {peer.pid, peer.uid, peer.gid};
}

// ---- the daemon's end

UnixConnection::UnixConnection(EpollLoop& loop, FileDescriptor socket, FrameHandler on_frame, EndHandler on_end,
                               base::ByteBudget* budget)
    : loop_(loop),
      socket_(std::move(socket)),
      handlers_(std::make_shared<const Handlers>(Handlers{std::move(on_frame), std::move(on_end)})),
      peer_(PeerOf(socket_.get())),
      claim_(budget),
      watch_(loop.Watch(socket_.get(), EPOLLIN, [this](uint32_t events) { OnEvents(events); })) {}

UnixConnection::~UnixConnection() {
  if (!deaf_ && !ended_) queue_.Flush(socket_.get()).status().IgnoreError();
}

void UnixConnection::Send(absl::Span<const uint8_t> body, absl::Span<const int> descriptors) {
  if (ended_ || deaf_) return;
  if (absl::Status s = queue_.Add(body, descriptors); !s.ok()) return End(s);
  if (queue_.bytes() > kMaxQueued) return End(absl::ResourceExhaustedError("the other side does not read"));
  Claim();
  if (ended_) return;
  if (!flush_waits_ && !flush_.armed()) flush_ = loop_.Post([this] { Flush(); });
}

void UnixConnection::OnEvents(uint32_t events) {
  if ((events & EPOLLOUT) != 0) Flush();
  // While frames wait for their turn, new events, even the end, wait behind them.
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !ended_ && !more_frames_.armed()) Read();
}

void UnixConnection::Read() {
  const absl::StatusOr<bool> read = assembler_.ReadSome(socket_.get());
  if (!read.ok()) return End(read.status());
  if (*read) HandleFrames();
}

void UnixConnection::Claim() {
  if (claim_.tight()) {
    assembler_.Shrink();
    queue_.Shrink();
  }
  if (claim_.Resize(assembler_.memory() + queue_.memory())) return;
  End(absl::ResourceExhaustedError(
      "all connections of the other side together have too many answers that are not read, and frames that are not "
      "whole"));
}

void UnixConnection::HandleFrames() {
  const std::shared_ptr<const Handlers> handlers = handlers_;
  const base::Lifetime::Watch watch = lifetime_.Watched();
  Frame frame;
  for (int i = 0; i < kFramesPerTurn; ++i) {
    if (!assembler_.Next(&frame)) {
      if (assembler_.bad()) return End(absl::InvalidArgumentError("the other side sent no frame"));
      Claim();
      return WatchWhatIsNeeded();
    }
    handlers->on_frame(std::move(frame));
    if (watch.over() || ended_) return;
  }
  more_frames_ = loop_.Post([this] { HandleFrames(); });
  Claim();
  WatchWhatIsNeeded();
}

void UnixConnection::Flush() {
  if (ended_) return;
  const absl::StatusOr<bool> flushed = queue_.Flush(socket_.get());
  if (absl::IsUnavailable(flushed.status())) {
    deaf_ = true;  // it may have sent more before it went: reading on comes to its end
    queue_.Clear();
  } else if (!flushed.ok()) {
    return End(flushed.status());
  }
  flush_waits_ = flushed.ok() && !*flushed;
  Claim();
  WatchWhatIsNeeded();
}

void UnixConnection::WatchWhatIsNeeded() {
  if (ended_) return;
  uint32_t events = 0;
  if (!more_frames_.armed()) events |= EPOLLIN;
  if (flush_waits_) events |= EPOLLOUT;
  watch_.SetEvents(events);
}

void UnixConnection::End(const absl::Status& why) {
  if (ended_) return;
  ended_ = true;
  watch_.Reset();
  flush_.Cancel();
  more_frames_.Cancel();
  end_ = loop_.Post([this, why] {
    const std::shared_ptr<const Handlers> handlers = handlers_;  // the handler may drop this
    handlers->on_end(why);
  });
}

// ---- listening

UnixListener::UnixListener(EpollLoop& loop, std::string path, FileDescriptor lock, FileDescriptor socket,
                           Handler handler)
    : loop_(loop),
      path_(std::move(path)),
      lock_(std::move(lock)),
      socket_(std::move(socket)),
      inode_(SocketFileInode(path_)),
      handler_(std::make_shared<const Handler>(std::move(handler))),
      watch_(loop.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { Accept(); })) {}

UnixListener::~UnixListener() {
  watch_.Reset();
  if (SocketFileInode(path_) == inode_) RemoveSocketFile(path_);
}

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Listen(EpollLoop& loop, const std::string& path,
                                                                   Handler handler, SocketAccess access) {
  absl::StatusOr<FileDescriptor> lock = LockSocketPath(path);
  if (!lock.ok()) return lock.status();
  absl::StatusOr<FileDescriptor> socket = BindSocketPath(path, kMaxWaitingConnects, access);
  if (!socket.ok()) {
    RemoveSocketLock(path);
    return socket.status();
  }
  return std::unique_ptr<UnixListener>(
      new UnixListener(loop, path, *std::move(lock), *std::move(socket), std::move(handler)));
}

void UnixListener::Accept() {
  const std::shared_ptr<const Handler> handler = handler_;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    FileDescriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      starved_ = false;
      (*handler)(std::move(socket));
      if (handler.use_count() == 1) return;  // it dropped this
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    if (!std::exchange(starved_, true)) {
      const std::string why = std::strerror(errno);
      LOG(WARNING) << "cannot take a program that connects to " << path_ << ": " << why
                   << "; it waits until descriptors are free (ulimit -n, LimitNOFILE of the service)";
    }
    watch_.SetEvents(0);
    retry_ = loop_.RunAfter(kAcceptRetry, [this] { watch_.SetEvents(EPOLLIN); });
    return;
  }
}

// ---- the client's end

bool AwaitReadable(int first, int second, base::Duration deadline) {
  bool is_first = false;
  DeadlineClock(deadline).Await(second, POLLIN, first, &is_first);
  return is_first;
}

absl::StatusOr<UnixSocket> UnixSocket::Connect(const std::string& path, base::Duration deadline) {
  absl::StatusOr<FileDescriptor> socket = ConnectSocketPath(path, deadline);
  if (!socket.ok()) return socket.status();
  const timeval tick = {kWaitTick.microseconds() / 1'000'000, kWaitTick.microseconds() % 1'000'000};
  if (setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) != 0) {
    return absl::ErrnoToStatus(errno, "SO_RCVTIMEO");
  }
  return UnixSocket(*std::move(socket));
}

absl::Status UnixSocket::Send(absl::Span<const uint8_t> body, absl::Span<const int> descriptors,
                              base::Duration deadline) {
  if (body.size() > kMaxFrame) {
    return absl::InvalidArgumentError(absl::StrCat("a frame has at most ", kMaxFrame, " bytes, not ", body.size()));
  }
  if (absl::Status s = queue_.Add(body, descriptors); !s.ok()) return s;
  return SendQueue(deadline);
}

absl::Status UnixSocket::SendAll(absl::Span<const std::vector<uint8_t>> bodies, base::Duration deadline) {
  if (absl::Status s = AddAll(bodies); !s.ok()) return s;
  return SendQueue(deadline);
}

absl::StatusOr<bool> UnixSocket::SendAllOrNone(absl::Span<const std::vector<uint8_t>> bodies, base::Duration patience,
                                               base::Duration deadline) {
  if (absl::Status s = AddAll(bodies); !s.ok()) return s;
  const DeadlineClock begin(patience), end(deadline);
  const size_t size = queue_.bytes();
  for (;;) {
    const absl::StatusOr<bool> sent = queue_.Flush(socket_.get());
    if (!sent.ok() || *sent) return sent;
    if (queue_.bytes() < size) break;
    if (!begin.Await(socket_.get(), POLLOUT)) {
      queue_.Clear();
      return false;
    }
  }
  if (absl::Status s = SendQueue(end.left()); !s.ok()) return s;
  return true;
}

absl::Status UnixSocket::AddAll(absl::Span<const std::vector<uint8_t>> bodies) {
  for (const std::vector<uint8_t>& body : bodies) {
    if (absl::Status s = queue_.Add(body, {}); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status UnixSocket::SendQueue(base::Duration deadline) {
  const DeadlineClock clock(deadline);
  for (;;) {
    const absl::StatusOr<bool> sent = queue_.Flush(socket_.get());
    if (!sent.ok()) return sent.status();
    if (*sent) return absl::OkStatus();
    if (!clock.Await(socket_.get(), POLLOUT)) return absl::DeadlineExceededError("the other side does not read");
  }
}

// Returns true if something came while it spun.
absl::StatusOr<bool> UnixSocket::Spin(base::Duration deadline) {
  const DeadlineClock clock(std::min(spin_, deadline));
  absl::StatusOr<bool> read = false;
  while (read.ok() && !*read && clock.left() > base::Duration()) read = assembler_.ReadSome(socket_.get());
  return read;
}

// Far from the deadline one system call waits and reads, unless there is an `interrupt` to watch.
absl::StatusOr<Frame> UnixSocket::Receive(base::Duration deadline, int interrupt) {
  const DeadlineClock clock(deadline);
  Frame frame;
  for (bool spun = spin_ <= base::Duration(); !assembler_.Next(&frame); spun = true) {
    if (!spun) {
      const absl::StatusOr<bool> came = Spin(deadline);
      if (!came.ok()) return came.status();
      if (*came) continue;
    }
    const bool far = interrupt < 0 && clock.left() > kWaitTick;
    bool interrupted = false;
    if (!far && !assembler_.bad() && !clock.Await(socket_.get(), POLLIN, interrupt, &interrupted))
      return absl::DeadlineExceededError("nothing came in time");
    if (interrupted) return absl::CancelledError("interrupted");
    const absl::StatusOr<bool> read = assembler_.ReadSome(socket_.get(), /*may_wait=*/far);
    if (!read.ok()) return read.status();
  }
  return frame;
}

void UnixSocket::Shutdown() { shutdown(socket_.get(), SHUT_RDWR); }

bool UnixSocket::ended() const {
  pollfd polled = {socket_.get(), POLLRDHUP, 0};
  return poll(&polled, 1, 0) > 0;
}

PeerCredentials UnixSocket::peer() const { return PeerOf(socket_.get()); }

}  // namespace tokamak::os
