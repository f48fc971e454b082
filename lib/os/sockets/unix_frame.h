// Frames on a stream socket: whole messages with their length before them, and descriptors beside
// them.
//
//   frame   length 3 | descriptors 1 | body          all little-endian
//
// The second field counts the descriptors that belong to this frame; without it a reader that gets
// several frames at once could not tell whose they are. The stream is untrusted: everything in it
// is bounded and checked.
// Thread rule: none of their own; each object belongs to one stream and one thread.
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

// Puts frames together from what a stream brings.
class FrameAssembler final {
 public:
  // Reads what is there, at most one read. True when something came, false when there is nothing
  // now; with `may_wait` only after the socket's own time-out, if it has one. kUnavailable: the
  // other side ended. kInvalidArgument: it broke the format. kResourceExhausted: this process may
  // have no more descriptors, and some came.
  absl::StatusOr<bool> ReadSome(int fd, bool may_wait = false);

  // Takes the next whole frame out; false when there is none.
  bool Next(Frame* frame);

  // The stream is malformed; nothing more comes out of it.
  bool bad() const { return bad_; }

  // Bytes that it takes, those that wait to be filled included.
  size_t memory() const { return bytes_.capacity(); }
  // Where it holds nothing it gives them back, instead of being ready for more.
  void Shrink();

 private:
  static constexpr size_t kReadSize = 64 * 1024;
  static constexpr size_t kKeptSize = 4 * kReadSize;  // a larger buffer is given back once it is empty

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

  // Sends what the socket takes; never waits. True when all has left, false when it takes no more
  // now. kUnavailable: the other side ended.
  absl::StatusOr<bool> Flush(int fd);

  size_t bytes() const { return bytes_.size() - begin_; }
  bool empty() const { return bytes() == 0; }
  void Clear();

  // As FrameAssembler has them.
  size_t memory() const { return bytes_.capacity(); }
  void Shrink();

 private:
  static constexpr size_t kKeptSize = 256 * 1024;  // a larger buffer is given back once it is empty

  // Descriptors leave with the first byte of their frame.
  struct Attached {
    uint64_t position;  // in the stream
    std::vector<FileDescriptor> descriptors;
  };

  std::vector<uint8_t> bytes_;
  size_t begin_ = 0;       // what is before has left
  uint64_t position_ = 0;  // of bytes_[begin_] in the stream
  std::deque<Attached> attached_;
};

}  // namespace tokamak::os
