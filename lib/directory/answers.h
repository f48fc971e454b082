// Answers runs callbacks later, in the order they were added, from a task of their own: so that none runs inside the call that
// took it. Dropping it drops them, also from inside one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lib/base/event_loop.h"

namespace tokamak::directory {

class Answers final {
 public:
  // `loop` must outlive it.
  explicit Answers(base::EventLoop& loop) : loop_(loop) {}
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  void Add(base::Task answer) {
    waiting_.push_back(std::move(answer));
    if (!timer_.armed()) timer_ = loop_.Post([this] { Run(); });
  }

 private:
  void Run() {
    const std::vector<base::Task> answers = std::exchange(waiting_, {});
    const std::weak_ptr<char> alive = alive_;
    for (const base::Task& answer : answers) {
      answer();
      if (alive.expired()) return;
    }
  }

  base::EventLoop& loop_;
  std::vector<base::Task> waiting_;
  base::Timer timer_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace tokamak::directory
