#include "lib/os/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lib/base/bytes.h"

namespace tokamak::os {

namespace {

constexpr size_t kLengthSize = 4;
constexpr int kAcceptsPerEvent = 16;

absl::Status SystemError(const std::string& what) {
  const std::string text = absl::StrCat(what, ": ", std::strerror(errno));
  if (errno == ENOENT) return absl::NotFoundError(text);
  if (errno == EACCES || errno == EPERM) return absl::PermissionDeniedError(text);
  return absl::UnavailableError(text);
}

absl::StatusOr<sockaddr_un> ToAddress(const std::string& path) {
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(
        absl::StrCat("a socket's path has 1 to ", sizeof address.sun_path - 1, " bytes: '", path, "'"));
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

FileDescriptor NewSocket(int flags) { return FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)); }

std::vector<uint8_t> WithLength(absl::Span<const uint8_t> body) {
  std::vector<uint8_t> bytes(kLengthSize + body.size());
  base::StoreLittle<uint32_t>(bytes.data(), static_cast<uint32_t>(body.size()));
  if (!body.empty()) std::memcpy(bytes.data() + kLengthSize, body.data(), body.size());
  return bytes;
}

// One sendmsg; descriptors travel with the first byte. Returns what send returns.
ssize_t SendPart(int fd, absl::Span<const uint8_t> bytes, absl::Span<const int> descriptors) {
  iovec piece = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

class DeadlineClock final {
 public:
  explicit DeadlineClock(base::Duration deadline)
      : end_(Clock::now() + std::chrono::nanoseconds(std::max<int64_t>(0, deadline.nanoseconds()))) {}

  // Waits for an event on `fd`; false at the deadline.
  bool Await(int fd, short events) const {
    while (true) {
      const auto left = std::chrono::nanoseconds(end_ - Clock::now()).count();
      timespec wait = {std::max<int64_t>(0, left) / 1'000'000'000, std::max<int64_t>(0, left) % 1'000'000'000};
      pollfd polled = {fd, events, 0};
      const int ready = ppoll(&polled, 1, &wait, nullptr);
      if (ready > 0) return true;
      if (ready == 0) return false;
      if (errno != EINTR) return true;  // the next call on `fd` says what is wrong
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end_;
};

}  // namespace

// ---- frames

absl::StatusOr<bool> FrameAssembler::ReadSome(int fd) {
  if (bad_) return absl::InvalidArgumentError("the other side sent no frame");
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(std::exchange(begin_, 0)));
  const size_t before = bytes_.size();
  bytes_.resize(before + kReadSize);
  iovec piece = {bytes_.data() + before, kReadSize};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const int error = errno;
  bytes_.resize(before + static_cast<size_t>(std::max<ssize_t>(0, got)));
  if (got < 0 && (error == EAGAIN || error == EWOULDBLOCK)) return false;
  if (got <= 0) return absl::UnavailableError("the other side ended the connection");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      descriptors_.emplace_back(descriptor);
    }
  }
  bad_ = descriptors_.size() > kMaxDescriptors || (message.msg_flags & MSG_CTRUNC) != 0;
  if (bad_) return absl::InvalidArgumentError("the other side sent too many descriptors");
  return true;
}

bool FrameAssembler::Next(Frame* frame) {
  const size_t have = bytes_.size() - begin_;
  if (bad_ || have < kLengthSize) return false;
  const uint32_t length = base::LoadLittle<uint32_t>(bytes_.data() + begin_);
  bad_ = length > kMaxFrame;
  if (bad_ || have - kLengthSize < length) return false;
  const auto body = bytes_.begin() + static_cast<std::ptrdiff_t>(begin_ + kLengthSize);
  frame->body.assign(body, body + length);
  frame->descriptors = std::exchange(descriptors_, {});
  begin_ += kLengthSize + length;
  return true;
}

// ---- the daemon's end

UnixConnection::UnixConnection(EpollLoop& loop, FileDescriptor socket, FrameHandler on_frame, EndHandler on_end)
    : loop_(loop),
      socket_(std::move(socket)),
      on_frame_(std::move(on_frame)),
      on_end_(std::move(on_end)),
      alive_(std::make_shared<bool>(true)),
      watch_(loop.Watch(socket_.get(), EPOLLIN, [this](uint32_t events) { OnEvents(events); })) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0) peer_pid_ = peer.pid;
}

UnixConnection::~UnixConnection() { *alive_ = false; }

void UnixConnection::OnEvents(uint32_t events) {
  const auto alive = alive_;
  if ((events & EPOLLOUT) != 0) Flush();
  if (*alive && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) ReadFrames();
}

void UnixConnection::ReadFrames() {
  const auto alive = alive_;
  const absl::StatusOr<bool> read = assembler_.ReadSome(socket_.get());
  Frame frame;
  while (!ended_ && assembler_.Next(&frame)) {
    on_frame_(std::move(frame));
    if (!*alive) return;
  }
  if (!read.ok()) return End(read.status());
  if (assembler_.bad()) End(absl::InvalidArgumentError("the other side sent no frame"));
}

void UnixConnection::Send(absl::Span<const uint8_t> body, absl::Span<const int> descriptors) {
  CHECK_LE(body.size(), kMaxFrame);
  CHECK_LE(descriptors.size(), kMaxDescriptors);
  if (ended_) return;
  queue_.push_back({WithLength(body), 0, {descriptors.begin(), descriptors.end()}});
  queued_bytes_ += queue_.back().bytes.size();
  if (queue_.size() == 1) Flush();
  if (queued_bytes_ > kMaxQueued) End(absl::ResourceExhaustedError("the client does not read its answers"));
}

void UnixConnection::Flush() {
  while (!ended_ && !queue_.empty()) {
    Outgoing& out = queue_.front();
    const auto rest = absl::MakeConstSpan(out.bytes).subspan(out.sent);
    const ssize_t sent = SendPart(socket_.get(), rest, out.sent == 0 ? out.descriptors : std::vector<int>());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) return End(absl::UnavailableError("the client ended the connection"));
    out.sent += static_cast<size_t>(sent);
    queued_bytes_ -= static_cast<size_t>(sent);
    if (out.sent == out.bytes.size()) queue_.pop_front();
  }
  if (!ended_) watch_.SetEvents(queue_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void UnixConnection::End(const absl::Status& why) {
  if (ended_) return;
  ended_ = true;
  watch_.Reset();
  ending_ = loop_.Post([this, why] {
    const EndHandler end = on_end_;  // the handler may drop this
    end(why);
  });
}

// ---- listening

UnixListener::UnixListener(EpollLoop& loop, std::string path, FileDescriptor lock, FileDescriptor socket, Handler handler)
    : path_(std::move(path)),
      lock_(std::move(lock)),
      socket_(std::move(socket)),
      handler_(std::move(handler)),
      watch_(loop.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { Accept(); })) {}

UnixListener::~UnixListener() {
  watch_.Reset();
  unlink(path_.c_str());
  unlink((path_ + ".lock").c_str());  // while we still hold it
}

// A lock beside the socket says whether its owner lives: no process can die without giving it up, and two that start at once
// cannot both think that the other is dead.
absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Listen(EpollLoop& loop, const std::string& path,
                                                                   Handler handler) {
  const auto address = ToAddress(path);
  if (!address.ok()) return address.status();
  FileDescriptor lock(open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return SystemError(absl::StrCat("cannot make a socket at ", path));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::AlreadyExistsError(absl::StrCat("somebody listens at ", path, " already: choose another path"));
  }
  struct stat held {};
  struct stat named {};
  if (fstat(lock.get(), &held) != 0 || stat((path + ".lock").c_str(), &named) != 0 || held.st_ino != named.st_ino) {
    return absl::AlreadyExistsError(absl::StrCat("somebody else takes or leaves ", path, " right now: try again"));
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    unlink((path + ".lock").c_str());
    return absl::InvalidArgumentError(absl::StrCat(path, " exists and is no socket: choose another path"));
  }
  unlink(path.c_str());
  FileDescriptor socket = NewSocket(SOCK_NONBLOCK);
  const mode_t before = umask(0177);
  const bool bound = bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0;
  umask(before);
  if (!bound || listen(socket.get(), kMaxWaitingConnects) != 0) {
    const absl::Status status = SystemError(absl::StrCat("cannot listen at ", path));
    unlink((path + ".lock").c_str());
    return status;
  }
  return std::unique_ptr<UnixListener>(
      new UnixListener(loop, path, std::move(lock), std::move(socket), std::move(handler)));
}

void UnixListener::Accept() {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    FileDescriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    handler_(std::move(socket));
  }
}

// ---- the client's end

absl::StatusOr<UnixSocket> UnixSocket::Connect(const std::string& path) {
  const auto address = ToAddress(path);
  if (!address.ok()) return address.status();
  FileDescriptor socket = NewSocket(0);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return SystemError(absl::StrCat("cannot connect to ", path));
  }
  return UnixSocket(std::move(socket));
}

absl::Status UnixSocket::Send(absl::Span<const uint8_t> body, base::Duration deadline) {
  if (body.size() > kMaxFrame) return absl::InvalidArgumentError("a frame of more than the allowed bytes");
  const DeadlineClock clock(deadline);
  const std::vector<uint8_t> bytes = WithLength(body);
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t part = SendPart(socket_.get(), absl::MakeConstSpan(bytes).subspan(sent), {});
    if (part >= 0) {
      sent += static_cast<size_t>(part);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!clock.Await(socket_.get(), POLLOUT)) return absl::DeadlineExceededError("the other side does not read");
    } else if (errno != EINTR) {
      return absl::UnavailableError("the other side ended the connection");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Frame> UnixSocket::Receive(base::Duration deadline) {
  const DeadlineClock clock(deadline);
  Frame frame;
  while (!assembler_.Next(&frame)) {
    const absl::StatusOr<bool> read = assembler_.ReadSome(socket_.get());
    if (!read.ok()) return read.status();
    if (*read) continue;
    if (!clock.Await(socket_.get(), POLLIN)) return absl::DeadlineExceededError("nothing came in time");
  }
  return frame;
}

void UnixSocket::Shutdown() { shutdown(socket_.get(), SHUT_RDWR); }

}  // namespace tokamak::os
