// Sweep goes over something large in small steps, one a task, so that the loop does other work
// between them.
//
// A round requested while one is under way follows it.
// Thread rule: one loop.
#pragma once

#include <functional>
#include <utility>

#include "lib/base/event_loop.h"

namespace tokamak::directory {

class Sweep final {
 public:
  // `step` does the next part, the first one if `first`, and returns true if there is more. `loop`
  // must outlive it.
  using Step = std::function<bool(bool first)>;
  Sweep(base::EventLoop& loop, Step step) : loop_(loop), step_(std::move(step)) {}
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  void Ask() {
    asked_ = true;
    if (!turn_.armed()) Continue();
  }

 private:
  void Continue() {
    turn_ = loop_.Post([this] {
      const bool first = !under_way_;
      if (first) asked_ = false;
      under_way_ = step_(first);
      if (under_way_ || asked_) Continue();
    });
  }

  base::EventLoop& loop_;
  const Step step_;
  bool asked_ = false;
  bool under_way_ = false;
  base::Timer turn_;
};

}  // namespace tokamak::directory
