// Answers runs callbacks later, in order, in one task, so that none runs inside the call that took
// it.
//
// Dropping a handle removes its answer; dropping Answers, also from inside one, drops all.
// Thread rule: one loop.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
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

  template <typename Callback>
  [[nodiscard]] Pending Add(Callback run) {
    auto answer = std::make_unique<AnswerOf<Callback>>(*this, std::move(run));
    waiting_.PushBack(answer.get());
    if (!turn_.armed()) turn_ = loop_.Post([this] { Run(); });
    return answer;
  }

  bool empty() const { return waiting_.empty(); }

 private:
  // Listed until it runs or is dropped.
  struct Answer : Handle {
    explicit Answer(Answers& answers) : owner(&answers) {}
    ~Answer() override {
      if (owner != nullptr) owner->waiting_.Remove(this);
    }
    virtual void Run() = 0;  // may drop this

    Answers* owner;
    Link<Answer> link;
  };
  // One allocation for answer and callback.
  template <typename Callback>
  struct AnswerOf final : Answer {
    AnswerOf(Answers& answers, Callback run) : Answer(answers), callback(std::move(run)) {}
    void Run() override {
      Callback run = std::move(callback);
      run();
    }
    Callback callback;
  };

  void Run() {
    const Lifetime::Watch watch = lifetime_.Watched();
    for (size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
      Answer* const answer = waiting_.PopFront();
      answer->owner = nullptr;
      answer->Run();  // may drop the answer, others, and this
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
