// Answers runs callbacks later, in the order they were added, from a task of their own: so that none runs inside the call that
// took it. Dropping it drops them, also from inside one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/reuse.h"

namespace tokamak::directory {

class Answers final {
 public:
  // `loop` must outlive it.
  explicit Answers(base::EventLoop& loop) : loop_(loop) {}
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  ~Answers() { batch_->dropped = true; }

  void Add(base::Task answer) {
    waiting_.push_back(std::move(answer));
    if (!timer_.armed()) timer_ = loop_.Post([this] { Run(); });
  }

 private:
  // What outlives Answers that are dropped inside one of them.
  struct Batch {
    std::vector<base::Task> answers;
    bool dropped = false;
  };

  void Run() {
    const std::shared_ptr<Batch> batch = batch_;
    batch->answers.swap(waiting_);
    for (const base::Task& answer : batch->answers) {
      answer();
      if (batch->dropped) return;
    }
    base::EmptyForReuse(batch->answers);
  }

  base::EventLoop& loop_;
  std::vector<base::Task> waiting_;
  base::Timer timer_;
  const std::shared_ptr<Batch> batch_ = std::make_shared<Batch>();
};

}  // namespace tokamak::directory
