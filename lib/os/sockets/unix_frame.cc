#include "lib/os/sockets/unix_frame.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/os/sockets/passed_descriptors.h"

namespace tokamak::os {
namespace {

constexpr size_t kHeaderSize = 4;
constexpr uint32_t kLengthMask = 0xffffff;
constexpr int kDescriptorsShift = 24;

std::vector<int> Numbers(const std::vector<FileDescriptor>& descriptors) {
  std::vector<int> numbers;
  for (const FileDescriptor& descriptor : descriptors) numbers.push_back(descriptor.get());
  return numbers;
}

msghdr Message(iovec* piece) {
  msghdr message{};
  message.msg_iov = piece;
  message.msg_iovlen = 1;
  return message;
}

}  // namespace

absl::StatusOr<bool> FrameAssembler::ReadSome(int fd, bool may_wait) {
  if (bad_) return absl::InvalidArgumentError("the other side sent no frame");
  MakeRoom();
  iovec piece = {bytes_.data() + end_, bytes_.size() - end_};
  msghdr message = Message(&piece);
  PassedDescriptors passed;
  passed.Expect(&message);
  ssize_t got;
  do {
    got = recvmsg(fd, &message, (may_wait ? 0 : MSG_DONTWAIT) | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (got <= 0) return absl::UnavailableError("the other side ended the connection");
  end_ += static_cast<size_t>(got);
  const absl::Status taken = PassedDescriptors::Take(&message, &descriptors_);
  bad_ = !taken.ok();
  if (bad_) return taken;
  return true;
}

void FrameAssembler::Shrink() {
  if (held() != 0) return;
  begin_ = end_ = 0;
  bytes_ = std::vector<uint8_t>();
}

bool FrameAssembler::Next(Frame* frame) {
  if (bad_) return false;
  if (held() == 0) bad_ = !descriptors_.empty();
  if (held() < kHeaderSize) return false;
  const uint32_t header = base::LoadLittle<uint32_t>(bytes_.data() + begin_);
  const size_t length = header & kLengthMask;
  const size_t count = header >> kDescriptorsShift;
  bad_ = length > kMaxFrame || count > kMaxDescriptors;
  if (bad_) return false;
  if (held() < kHeaderSize + length) {
    // All descriptors beyond those of earlier frames belong to this one.
    bad_ = descriptors_.size() > count;
    return false;
  }
  bad_ = descriptors_.size() < count;
  if (bad_) return false;
  const uint8_t* body = bytes_.data() + begin_ + kHeaderSize;
  frame->body.assign(body, body + length);
  const auto end = descriptors_.begin() + static_cast<std::ptrdiff_t>(count);
  frame->descriptors.assign(std::make_move_iterator(descriptors_.begin()), std::make_move_iterator(end));
  descriptors_.erase(descriptors_.begin(), end);
  begin_ += kHeaderSize + length;
  return true;
}

// Makes room for a read of reasonable size, and for the rest of a frame that has begun.
void FrameAssembler::MakeRoom() {
  if (held() == 0) {
    begin_ = end_ = 0;
    if (bytes_.size() > kKeptSize) bytes_ = std::vector<uint8_t>();
  }
  size_t room = kReadSize;
  if (held() >= kHeaderSize) {
    const size_t whole = kHeaderSize + (base::LoadLittle<uint32_t>(bytes_.data() + begin_) & kLengthMask);
    if (whole > held()) room = std::max(room, whole - held());
  }
  if (bytes_.size() - end_ >= room) return;
  if (begin_ > 0) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, held());
    end_ -= std::exchange(begin_, 0);
  }
  if (bytes_.size() < end_ + room) bytes_.resize(end_ + room);
}

absl::Status FrameQueue::Add(absl::Span<const uint8_t> body, absl::Span<const int> descriptors) {
  CHECK_LE(body.size(), kMaxFrame);
  CHECK_LE(descriptors.size(), kMaxDescriptors);
  if (!descriptors.empty()) {
    Attached attached{position_ + bytes(), {}};
    for (const int fd : descriptors) {
      attached.descriptors.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 0));
      if (!attached.descriptors.back().valid()) return absl::ErrnoToStatus(errno, "copy a descriptor");
    }
    attached_.push_back(std::move(attached));
  }
  if (begin_ > bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(std::exchange(begin_, 0)));
  }
  const size_t end = bytes_.size();
  bytes_.resize(end + kHeaderSize);
  base::StoreLittle<uint32_t>(bytes_.data() + end,
                              static_cast<uint32_t>(body.size() | descriptors.size() << kDescriptorsShift));
  bytes_.insert(bytes_.end(), body.begin(), body.end());
  return absl::OkStatus();
}

absl::StatusOr<bool> FrameQueue::Flush(int fd) {
  while (!empty()) {
    iovec piece = {bytes_.data() + begin_, bytes()};
    msghdr message = Message(&piece);
    PassedDescriptors passed;
    const bool attach = !attached_.empty() && attached_.front().position == position_;
    if (attach) passed.Attach(Numbers(attached_.front().descriptors), &message);
    // A frame with descriptors begins a call of its own.
    const size_t next = attach ? 1 : 0;
    if (attached_.size() > next) piece.iov_len = static_cast<size_t>(attached_[next].position - position_);
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
      return absl::UnavailableError("the other side ended the connection");
    }
    if (sent < 0) return absl::ErrnoToStatus(errno, "send on a Unix socket");
    if (attach) attached_.pop_front();
    begin_ += static_cast<size_t>(sent);
    position_ += static_cast<uint64_t>(sent);
  }
  Clear();
  return true;
}

void FrameQueue::Shrink() {
  if (empty()) std::vector<uint8_t>().swap(bytes_);
}

void FrameQueue::Clear() {
  position_ += bytes();
  bytes_.clear();
  if (bytes_.capacity() > kKeptSize) bytes_.shrink_to_fit();
  begin_ = 0;
  attached_.clear();
}

}  // namespace tokamak::os
