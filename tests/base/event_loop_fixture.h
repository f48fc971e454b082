// A loop under test, and what tests of the promises of event loops have in common.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/event_loop.h"

namespace tokamak::base {

// A loop and the means to drive it.
class LoopHarness {
 public:
  virtual ~LoopHarness() = default;
  virtual EventLoop& loop() = 0;

  // Drives the loop until `done`. Returns false when that takes unreasonably long.
  virtual bool RunUntil(const std::function<bool()>& done) = 0;
};

struct LoopCase {
  std::string name;
  std::function<std::unique_ptr<LoopHarness>()> make;
};

inline std::string LoopCaseName(const testing::TestParamInfo<LoopCase>& info) { return info.param.name; }

class EventLoopContract : public testing::TestWithParam<LoopCase> {
 protected:
  EventLoopContract() : harness_(GetParam().make()), loop_(harness_->loop()) {}

  // A task that notes `what` in ran_.
  Task Note(int what) {
    return [this, what] { ran_.push_back(what); };
  }

  // Runs what is posted by now, and what that posts to be run before.
  void RunPosted() {
    bool reached = false;
    const Timer last = loop_.Post([&] { reached = true; });
    ASSERT_TRUE(harness_->RunUntil([&] { return reached; }));
  }

  void RunFor(Duration duration) {
    bool reached = false;
    const Timer last = loop_.RunAfter(duration, [&] { reached = true; });
    ASSERT_TRUE(harness_->RunUntil([&] { return reached; }));
  }

  void RunUntilRan(size_t count) {
    ASSERT_TRUE(harness_->RunUntil([&] { return ran_.size() >= count; })) << ran_.size() << " of " << count;
  }

  // Asks inside a task, where time stands still.
  void InATask(const std::function<void()>& ask) {
    bool asked = false;
    const Timer timer = loop_.Post([&] {
      ask();
      asked = true;
    });
    ASSERT_TRUE(harness_->RunUntil([&] { return asked; }));
  }

  const std::unique_ptr<LoopHarness> harness_;
  EventLoop& loop_;
  std::vector<int> ran_;
  Timer timers_[4];
};

using Order = std::vector<int>;

}  // namespace tokamak::base
