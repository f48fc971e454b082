// Frames on a stream socket: whole messages with their length before them, and descriptors beside
// them.
//
// frame   length 3 | descriptors 1 | body          all little-endian
//
// The second field counts the frame's descriptors, so that a reader of several frames can assign
// them. The stream is untrusted: everything is bounded and checked.
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

class FrameAssembler final {
 public:
  // Reads once. Returns true if any bytes came, false if there are none now; with `may_wait` it
  // returns false only after the socket's own time-out, if it has one. kUnavailable: the other side
  // ended. kInvalidArgument: it broke the format. kResourceExhausted: some descriptors came, and
  // this process may have no more.
  absl::StatusOr<bool> ReadSome(int fd, bool may_wait = false);

  // Takes out the next frame. Returns false if no whole one is there.
  bool Next(Frame* frame);

  // True once the stream is malformed: no more frames come out of it.
  bool bad() const { return bad_; }

  // Bytes of the buffer, free ones included.
  size_t memory() const { return bytes_.capacity(); }
  void Shrink();

 private:
  static constexpr size_t kReadSize = 64 * 1024;
  static constexpr size_t kKeptSize = 4 * kReadSize;  // a larger buffer is freed once it is empty

  size_t held() const { return end_ - begin_; }
  void MakeRoom();

  std::vector<uint8_t> bytes_;
  size_t begin_ = 0;  // bytes_[begin_, end_) came and were not taken out
  size_t end_ = 0;
  std::vector<FileDescriptor> descriptors_;
  bool bad_ = false;
};

class FrameQueue final {
 public:
  // Adds a frame. Copies both: `descriptors` may be closed afterwards. Fails, adding nothing, if
  // the process has no descriptors left. body.size() <= kMaxFrame, descriptors.size() <=
  // kMaxDescriptors.
  absl::Status Add(absl::Span<const uint8_t> body, absl::Span<const int> descriptors);

  // Sends what the socket takes; never waits. Returns true when all has left. kUnavailable: the
  // other side ended.
  absl::StatusOr<bool> Flush(int fd);

  size_t bytes() const { return bytes_.size() - begin_; }
  bool empty() const { return bytes() == 0; }
  void Clear();

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
