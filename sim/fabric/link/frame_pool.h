// FramePool keeps frames for reuse, and makes some only when more are in use than ever before.
//
// Law: every frame that was taken has been given back when the pool goes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "lib/base/check.h"
#include "sim/fabric/link/frame.h"

namespace tokamak::sim {

class FramePool final {
 public:
  FramePool() = default;
  ~FramePool() { CHECK_EQ(in_use_, size_t{0}) << "frames were lost"; }
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // As its last holder left it.
  Frame* Take() {
    ++in_use_;
    if (free_ == nullptr) MakeSome();
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
  size_t made() const { return made_; }

 private:
  // As many as exist, within these bounds.
  static constexpr size_t kLeastSlab = 32;
  static constexpr size_t kMostSlab = 8192;

  void MakeSome() {
    const size_t count = std::clamp(made_, kLeastSlab, kMostSlab);
    slabs_.push_back(std::make_unique<Frame[]>(count));
    made_ += count;
    for (size_t i = count; i-- > 0;) {
      Frame& frame = slabs_.back()[i];
      frame.next = free_;
      free_ = &frame;
    }
  }

  std::vector<std::unique_ptr<Frame[]>> slabs_;
  Frame* free_ = nullptr;
  size_t in_use_ = 0;
  size_t made_ = 0;
};

}  // namespace tokamak::sim
