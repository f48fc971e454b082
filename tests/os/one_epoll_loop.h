// A loop in each of its modes, and what it finds work by: a descriptor that makes events, and a
// poller.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/poller.h"

namespace tokamak::os {

// A descriptor that is readable while its count is not 0.
class Event final {
 public:
  Event() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  int fd() const { return fd_.get(); }
  void Set() const { EXPECT_EQ(eventfd_write(fd(), 1), 0); }
  bool Take() const {
    eventfd_t count;
    return eventfd_read(fd(), &count) == 0;
  }

 private:
  const FileDescriptor fd_;
};

// Work is a number that anybody may raise; as a device would, it makes an event only while armed.
class FakePoller final : public Poller {
 public:
  bool Poll() override {
    ++polls;
    event.Take();
    if (on_poll) on_poll();
    return work.exchange(0) > 0;
  }
  void Arm() override {
    ++arms;
    armed = true;
    if (on_arm) on_arm();
  }
  int descriptor() const override { return event.fd(); }

  void Arrive() {
    ++work;
    if (armed.exchange(false)) event.Set();
  }

  const Event event;
  std::atomic<int> work{0};
  std::atomic<bool> armed{false};
  int polls = 0;
  int arms = 0;
  std::function<void()> on_poll, on_arm;
};

class OneEpollLoop : public testing::TestWithParam<Detection> {
 protected:
  bool RunUntil(const std::function<bool()>& done) { return loop_.RunUntil(done, loop_.Now() + base::Seconds(60)); }

  // A few rounds.
  void RunFor(base::Duration duration) {
    bool reached = false;
    const base::Timer timer = loop_.RunAfter(duration, [&] { reached = true; });
    EXPECT_TRUE(RunUntil([&] { return reached; }));
  }

  // A task that posts itself for ever: the loop goes on with its rounds.
  void KeepGoing() {
    timer_ = loop_.Post([this] { KeepGoing(); });
  }

  EpollLoop loop_{GetParam()};
  FakePoller poller_;
  base::Timer timer_;
};

inline std::string ModeName(const testing::TestParamInfo<Detection>& info) {
  constexpr const char* kNames[] = {"Busy", "Event", "Adaptive"};
  return kNames[static_cast<int>(info.param.mode)];
}

inline const auto kModes =
    testing::Values(Detection::Busy(), Detection::Event(), Detection::Adaptive(base::Microseconds(20)));

}  // namespace tokamak::os
