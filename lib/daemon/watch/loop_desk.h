// LoopDesk has an event loop answer the questions of other threads, which wait at most until a
// deadline.
//
// The answer is a copy. A question whose asker has gone ends by itself, or with the desk. Bound:
// kMaxQuestions wait; beyond, and from Close on, there is no answer. Thread rule: made, closed and
// dropped on the loop's thread; Ask from any other.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/mutex.h"

namespace tokamak::daemon {

class LoopDesk final {
 public:
  static constexpr size_t kMaxQuestions = 64;

  explicit LoopDesk(base::EventLoop& loop) : asked_(loop.MakeSignal([this] { TakeQuestions(); })) {}
  // Requires that nobody asks any more.
  ~LoopDesk() { Close(); }
  LoopDesk(const LoopDesk&) = delete;
  LoopDesk& operator=(const LoopDesk&) = delete;

  // Runs `question` on the loop and returns the answer given, once, now or later, to its argument;
  // keeps its result until then. nullopt: no answer within `deadline`.
  template <typename Answer>
  std::optional<Answer> Ask(std::function<base::Pending(std::function<void(Answer)>)> question,
                            std::chrono::milliseconds deadline) {
    const auto slot = std::make_shared<std::optional<Answer>>();
    const auto asked = std::make_shared<Question>();
    asked->begin = [question = std::move(question), slot](const std::function<void()>& answered) {
      return question([slot, answered](Answer answer) {
        *slot = std::move(answer);
        answered();
      });
    };
    if (!Await(asked, deadline)) return std::nullopt;
    return std::move(*slot);
  }

  // Waiting askers get no answer.
  void Close() {
    running_.clear();
    const base::MutexLock lock(mutex_);
    closed_ = true;
    waiting_.clear();
    ended_.NotifyAll();
  }

 private:
  struct Question {
    std::function<base::Pending(const std::function<void()>& answered)> begin;
    bool answered = false;  // guarded by mutex_, unseen by clang
  };

  bool Await(const std::shared_ptr<Question>& question, std::chrono::milliseconds deadline) {
    const base::MutexLock lock(mutex_);
    if (closed_ || open_ >= kMaxQuestions) return false;
    ++open_;
    waiting_.push_back(question);
    asked_->Raise();
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!question->answered && !closed_ && ended_.WaitUntil(mutex_, end)) {
    }
    return question->answered;
  }

  // On the loop.
  void TakeQuestions() {
    std::vector<std::shared_ptr<Question>> questions;
    {
      const base::MutexLock lock(mutex_);
      questions.swap(waiting_);
    }
    for (const auto& question : questions) {
      const uint64_t number = ++last_number_;
      running_[number] = nullptr;
      base::Pending pending = question->begin([this, question, number] { Answered(*question, number); });
      const auto running = running_.find(number);
      if (running != running_.end()) running->second = std::move(pending);
    }
  }

  void Answered(Question& question, uint64_t number) {
    const auto ended = running_.extract(number);  // dropped without the lock
    const base::MutexLock lock(mutex_);
    question.answered = true;
    --open_;
    ended_.NotifyAll();
  }

  const std::unique_ptr<base::Signal> asked_;
  std::map<uint64_t, base::Pending> running_;  // the loop's
  uint64_t last_number_ = 0;                   // likewise
  base::Mutex mutex_;
  base::CondVar ended_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Question>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::daemon
