// VirtualSignal is a signal of an event loop in virtual time.
//
// Raises at different times stay apart until answered: one after Spend is not answered early, nor
// delays another task's. Thread rule: its loop's.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/event_loop.h"

namespace tokamak::sim {

class VirtualSignal final : public base::Signal {
 public:
  // `loop` must outlive it.
  VirtualSignal(base::EventLoop& loop, base::Task task)
      : loop_(loop), task_(std::make_shared<const base::Task>(std::move(task))) {}

  void Raise() override {
    const base::Time now = loop_.Now();
    for (const Pending& pending : pending_) {
      if (pending.time == now) return;
    }
    pending_.push_back({now, loop_.RunAt(now, [this] { Run(); })});
  }

 private:
  struct Pending {
    base::Time time;
    base::Timer timer;
  };

  void Run() {
    const base::Time now = loop_.Now();
    const auto answered = [now](const Pending& pending) { return pending.time <= now; };
    pending_.erase(std::remove_if(pending_.begin(), pending_.end(), answered), pending_.end());
    const std::shared_ptr<const base::Task> task = task_;  // may drop this signal
    (*task)();
  }

  base::EventLoop& loop_;
  const std::shared_ptr<const base::Task> task_;
  std::vector<Pending> pending_;
};

}  // namespace tokamak::sim
