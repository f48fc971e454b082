// FramePool keeps frames for use again: it makes one only where more are in use than ever before.
//
// Law: every frame that was taken has been given back when the pool goes.
#pragma once

#include <cstddef>
#include <deque>

#include "glog/logging.h"
#include "sim/fabric/frame.h"

namespace tokamak::sim {

class FramePool final {
 public:
  FramePool() = default;
  ~FramePool() { CHECK_EQ(in_use_, size_t{0}) << "frames were lost"; }
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // A frame as whoever had it last left it.
  Frame* Take() {
    ++in_use_;
    if (free_ == nullptr) return &frames_.emplace_back();
    Frame* frame = free_;
    free_ = frame->next;
    return frame;
  }

  void Give(Frame* frame) {
    --in_use_;
    frame->next = free_;
    free_ = frame;
  }

  size_t in_use() const { return in_use_; }
  size_t made() const { return frames_.size(); }

 private:
  std::deque<Frame> frames_;  // stay where they are
  Frame* free_ = nullptr;
  size_t in_use_ = 0;
};

}  // namespace tokamak::sim
