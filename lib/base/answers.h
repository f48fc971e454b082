// Answers runs callbacks later, in the order they were added, in one task: so that none runs inside the call that took it.
//
// Dropping an answer's handle takes it out; dropping Answers drops them all, also from inside one.
// Thread rule: one loop.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/intrusive_list.h"
#include "lib/base/lifetime.h"

namespace tokamak::base {

class Answers final {
 public:
  // `loop` must outlive it.
  explicit Answers(EventLoop& loop) : loop_(loop) {}
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers() {
    while (!waiting_.empty()) waiting_.PopFront()->owner = nullptr;
  }

  [[nodiscard]] Pending Add(Task run) {
    auto answer = std::make_unique<Answer>(*this, std::move(run));
    waiting_.PushBack(answer.get());
    if (!turn_.armed()) turn_ = loop_.Post([this] { Run(); });
    return answer;
  }

  bool empty() const { return waiting_.empty(); }

 private:
  // On the list until it runs or is dropped.
  struct Answer final : Handle {
    Answer(Answers& answers, Task task) : owner(&answers), run(std::move(task)) {}
    ~Answer() override {
      if (owner != nullptr) owner->waiting_.Remove(this);
    }

    Answers* owner;
    Task run;
    Link<Answer> link;
  };

  void Run() {
    const Lifetime::Watch watch = lifetime_.Watched();
    for (size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
      Answer* const answer = waiting_.PopFront();
      answer->owner = nullptr;
      const Task run = std::move(answer->run);
      run();  // may drop the answer, others, and us
      if (watch.over()) return;
    }
    if (!waiting_.empty() && !turn_.armed()) turn_ = loop_.Post([this] { Run(); });
  }

  EventLoop& loop_;
  IntrusiveList<Answer, &Answer::link> waiting_;
  Timer turn_;
  const Lifetime lifetime_;
};

}  // namespace tokamak::base
