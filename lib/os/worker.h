// Worker makes calls that may block on a thread of its own, and brings the results back to a loop: registering gigabytes of
// memory, fallocate, looking up a name.
//
//   absl::StatusOr<WorkerCall> call = worker.Ask([path] { return ReadFile(path); }, [this](Status s) { Finish(s); });
//
// Calls are made one at a time, in order. A call's `work` owns what it uses: it may outlive who asked.
// Thread rule: everything here is for the loop's thread; `work` runs, and is destroyed, on the worker's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"

namespace tokamak::os {

class Worker;

// The right to hear of one call's end. Dropping it means that `done` never runs; work that has not begun is left out, work
// that has runs on. Move-only; may outlive the worker.
class [[nodiscard]] WorkerCall final {
 public:
  WorkerCall() = default;
  WorkerCall(WorkerCall&&) noexcept = default;
  WorkerCall& operator=(WorkerCall&& other) noexcept;
  ~WorkerCall() { Cancel(); }

  void Cancel();

 private:
  friend class Worker;
  struct Job;
  explicit WorkerCall(std::shared_ptr<Job> job) : job_(std::move(job)) {}

  std::shared_ptr<Job> job_;
};

class Worker final {
 public:
  static constexpr size_t kDefaultMostWaiting = 1024;

  // `name` is the thread's. At most `most_waiting` calls wait for their turn.
  Worker(base::EventLoop& loop, std::string name, size_t most_waiting = kDefaultMostWaiting);

  // Waits for the work that is under way; leaves out the rest. No `done` runs any more. A `done` may drop its worker.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `work` on the worker's thread and then `done` on the loop. Fails with ResourceExhausted when too many wait.
  absl::StatusOr<WorkerCall> Start(std::function<void()> work, base::Task done);

  // The same for work with a result, which `done` takes. Both are copyable.
  template <typename Work, typename Done>
  absl::StatusOr<WorkerCall> Ask(Work work, Done done) {
    auto result = std::make_shared<std::optional<std::invoke_result_t<Work>>>();
    return Start([work = std::move(work), result] { result->emplace(work()); },
                 [done = std::move(done), result] { done(*std::move(*result)); });
  }

 private:
  using Job = WorkerCall::Job;

  void RunWork();
  void FinishCalls();

  const size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;

  // Guarded by mutex_.
  std::deque<std::shared_ptr<Job>> waiting_;
  std::vector<std::shared_ptr<Job>> finished_;
  bool stopping_ = false;

  bool* dropped_ = nullptr;  // where FinishCalls hears that a `done` dropped this

  const std::unique_ptr<base::Signal> some_finished_;
  std::thread thread_;
};

}  // namespace tokamak::os
