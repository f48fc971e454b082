// Frames on a stream socket: whole messages with their length before them, and descriptors beside
// them.
//
// frame   length 3 | descriptors 1 | body          all little-endian
//
// The second field counts the descriptors that belong to this frame; without it a reader that gets
// several frames at once could not assign them. The stream is untrusted: everything in it is
// bounded and checked.
// Thread rule: each object belongs to one stream and one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::os {

constexpr size_t kMaxFrame = 1024 * 1024 + 64;  // bytes of a body
static_assert(kMaxFrame < size_t{1} << 24, "a length has three bytes");

struct Frame {
  std::vector<uint8_t> body;
  std::vector<FileDescriptor> descriptors;
};

// Assembles frames from the bytes of a stream.
class FrameAssembler final {
 public:
  // Reads available bytes, at most one read. Returns true if any came, false if there are none now;
  // with `may_wait` only after the socket's own time-out, if it has one. kUnavailable: the other
  // side ended. kInvalidArgument: it broke the format. kResourceExhausted: some descriptors came,
  // and this process may have no more.
  absl::StatusOr<bool> ReadSome(int fd, bool may_wait = false);

  // Returns false if no whole frame is there.
  bool Next(Frame* frame);

  // True if the stream is malformed; no more frames come out of it.
  bool bad() const { return bad_; }

  // Bytes of its buffer, free ones included.
  size_t memory() const { return bytes_.capacity(); }
  // Frees the buffer if it holds no bytes, instead of keeping it for more.
  void Shrink();

 private:
  static constexpr size_t kReadSize = 64 * 1024;
  static constexpr size_t kKeptSize = 4 * kReadSize;  // a larger buffer is freed once it is empty

  size_t held() const { return end_ - begin_; }
  void MakeRoom();

  std::vector<uint8_t> bytes_;
  size_t begin_ = 0;  // bytes_[begin_, end_) came and was not taken out
  size_t end_ = 0;
  std::vector<FileDescriptor> descriptors_;
  bool bad_ = false;
};

// Frames that wait to be sent, in order.
class FrameQueue final {
 public:
  // Copies both: `descriptors` may be closed afterwards. Fails, adding nothing, when there are no
  // descriptors left. body.size() <= kMaxFrame, descriptors.size() <= kMaxDescriptors.
  absl::Status Add(absl::Span<const uint8_t> body, absl::Span<const int> descriptors);

  // Sends as much as the socket takes; never waits. Returns true when all has left, false when it
  // takes no more now. kUnavailable: the other side ended.
  absl::StatusOr<bool> Flush(int fd);

  size_t bytes() const { return bytes_.size() - begin_; }
  bool empty() const { return bytes() == 0; }
  void Clear();

  // As FrameAssembler has them.
  size_t memory() const { return bytes_.capacity(); }
  void Shrink();

 private:
  static constexpr size_t kKeptSize = 256 * 1024;  // a larger buffer is freed once it is empty

  // Descriptors leave with the first byte of their frame.
  struct Attached {
    uint64_t position;  // in the stream
    std::vector<FileDescriptor> descriptors;
  };

  std::vector<uint8_t> bytes_;
  size_t begin_ = 0;       // bytes before it have left
  uint64_t position_ = 0;  // of bytes_[begin_] in the stream
  std::deque<Attached> attached_;
};

}  // namespace tokamak::os
