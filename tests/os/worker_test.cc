#include "lib/os/worker.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/os/epoll_loop.h"

namespace tokamak::os {
namespace {

// A call that blocks its worker until the test says so.
class Gate final {
 public:
  void Open() { opened_.set_value(); }
  // To be copied into the work.
  std::shared_future<void> future() const { return future_; }

 private:
  std::promise<void> opened_;
  std::shared_future<void> future_ = opened_.get_future().share();
};

class WorkerTest : public testing::Test {
 protected:
  bool RunUntil(const std::function<bool()>& done) { return loop_.RunUntil(done, loop_.Now() + base::Seconds(60)); }

  EpollLoop loop_;
  std::vector<int> finished_;
};

TEST_F(WorkerTest, WorkRunsElsewhereAndItsEndComesBackToTheLoop) {
  Worker worker(loop_, "worker");
  std::thread::id worked, finished;
  auto call =
      worker.Start([&] { worked = std::this_thread::get_id(); }, [&] { finished = std::this_thread::get_id(); });
  ASSERT_TRUE(call.ok());
  EXPECT_TRUE(RunUntil([&] { return finished != std::thread::id(); }));
  EXPECT_EQ(finished, std::this_thread::get_id());
  EXPECT_NE(worked, finished);
}

TEST_F(WorkerTest, AskBringsTheResult) {
  Worker worker(loop_, "worker");
  std::string result;
  auto call = worker.Ask([] { return std::string("result"); }, [&](std::string s) { result = std::move(s); });
  ASSERT_TRUE(call.ok());
  EXPECT_TRUE(RunUntil([&] { return !result.empty(); }));
  EXPECT_EQ(result, "result");
}

TEST_F(WorkerTest, CallsEndInTheOrderAsked) {
  Worker worker(loop_, "worker");
  std::vector<WorkerCall> calls;
  for (int i = 0; i < 100; ++i) {
    calls.push_back(*worker.Ask([i] { return i; }, [this](int value) { finished_.push_back(value); }));
  }
  EXPECT_TRUE(RunUntil([&] { return finished_.size() == 100; }));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(finished_[static_cast<size_t>(i)], i);
}

TEST_F(WorkerTest, TooManyWaitingCallsAreRefused) {
  Gate gate;
  Worker worker(loop_, "worker", 2);
  std::promise<void> begun;
  auto running = worker.Start(
      [future = gate.future(), &begun] {
        begun.set_value();
        future.wait();
      },
      [] {});
  begun.get_future().wait();
  auto first = worker.Start([] {}, [] {});
  auto second = worker.Start([] {}, [this] { finished_.push_back(2); });
  auto third = worker.Start([] {}, [] {});
  EXPECT_TRUE(second.ok());
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  gate.Open();
  EXPECT_TRUE(RunUntil([&] { return !finished_.empty(); }));
  EXPECT_TRUE(worker.Start([] {}, [] {}).ok());
}

TEST_F(WorkerTest, DroppingACallThatHasNotBegunLeavesItsWorkOut) {
  Gate gate;
  Worker worker(loop_, "worker");
  auto running = worker.Start([future = gate.future()] { future.wait(); }, [] {});
  auto worked = std::make_shared<std::atomic<bool>>(false);
  auto dropped = worker.Start([worked] { *worked = true; }, [this] { finished_.push_back(1); });
  auto last = worker.Start([] {}, [this] { finished_.push_back(2); });
  dropped->Cancel();
  gate.Open();
  EXPECT_TRUE(RunUntil([&] { return !finished_.empty(); }));
  EXPECT_EQ(finished_, (std::vector<int>{2}));
  EXPECT_FALSE(*worked);
}

TEST_F(WorkerTest, DroppingACallThatRunsSilencesItsEnd) {
  Gate gate;
  Worker worker(loop_, "worker");
  std::promise<void> begun;
  auto held = std::make_shared<int>(1);
  {
    auto call = worker.Start(
        [future = gate.future(), &begun] {
          begun.set_value();
          future.wait();
        },
        [this, held] { finished_.push_back(1); });
    begun.get_future().wait();
  }
  EXPECT_EQ(held.use_count(), 1);
  gate.Open();
  auto last = worker.Start([] {}, [this] { finished_.push_back(2); });
  EXPECT_TRUE(RunUntil([&] { return !finished_.empty(); }));
  EXPECT_EQ(finished_, (std::vector<int>{2}));
}

TEST_F(WorkerTest, AnEarlierEndMayDropALaterCall) {
  Worker worker(loop_, "worker");
  WorkerCall second;
  std::promise<void> both;
  auto first = worker.Start([] {},
                            [&] {
                              second.Cancel();
                              finished_.push_back(1);
                            });
  second = *worker.Start([] {}, [this] { finished_.push_back(2); });
  auto third = worker.Start([&] { both.set_value(); }, [this] { finished_.push_back(3); });
  both.get_future().wait();  // so that the ends of the first two come in one batch
  EXPECT_TRUE(RunUntil([&] { return finished_.size() == 2; }));
  EXPECT_EQ(finished_, (std::vector<int>{1, 3}));
}

TEST_F(WorkerTest, DroppingTheWorkerWaitsForWorkUnderWayOnly) {
  Gate gate;
  std::promise<void> begun;
  auto worked = std::make_shared<std::atomic<int>>(0);
  auto worker = std::make_unique<Worker>(loop_, "worker");
  auto running = worker->Start(
      [worked, future = gate.future(), &begun] {
        begun.set_value();
        future.wait();
        ++*worked;
      },
      [this] { finished_.push_back(1); });
  auto waiting = worker->Start([worked] { ++*worked; }, [this] { finished_.push_back(2); });
  begun.get_future().wait();
  std::thread opener([&] { gate.Open(); });
  worker.reset();
  opener.join();
  EXPECT_GE(*worked, 1);
  bool reached = false;
  const base::Timer timer = loop_.RunAfter(base::Milliseconds(1), [&] { reached = true; });
  EXPECT_TRUE(RunUntil([&] { return reached; }));
  EXPECT_TRUE(finished_.empty());
}

TEST_F(WorkerTest, AnEndMayDropTheWorker) {
  auto worker = std::make_unique<Worker>(loop_, "worker");
  std::promise<void> both;
  auto first = worker->Start([] {},
                             [&] {
                               worker.reset();
                               finished_.push_back(1);
                             });
  auto second = worker->Start([&] { both.set_value(); }, [this] { finished_.push_back(2); });
  both.get_future().wait();
  EXPECT_TRUE(RunUntil([&] { return !finished_.empty(); }));
  EXPECT_EQ(finished_, (std::vector<int>{1}));
}

}  // namespace
}  // namespace tokamak::os
