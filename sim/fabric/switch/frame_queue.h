// FrameQueue is a first-in, first-out line of frames that knows its length.
#pragma once

#include <cstdint>

#include "sim/fabric/link/frame.h"

namespace tokamak::sim {

class FrameQueue final {
 public:
  bool empty() const { return first_ == nullptr; }
  const Frame* front() const { return first_; }
  uint64_t frames() const { return frames_; }
  uint64_t bytes() const { return bytes_; }

  void Push(Frame* frame) {
    frame->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = frame;
    last_ = frame;
    ++frames_;
    bytes_ += frame->wire_bytes;
  }

  // The queue must not be empty.
  Frame* Pop() {
    Frame* frame = first_;
    first_ = frame->next;
    --frames_;
    bytes_ -= frame->wire_bytes;
    return frame;
  }

 private:
  Frame* first_ = nullptr;
  Frame* last_ = nullptr;
  uint64_t frames_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace tokamak::sim
