#include "lib/os/worker.h"

#include "absl/strings/str_cat.h"
#include "lib/os/thread.h"

namespace tokamak::os {

struct WorkerCall::Job {
  std::function<void()> work;  // the worker's thread, once it is in the queue
  base::Task done;             // the loop's thread
  std::atomic<bool> cancelled{false};
};

WorkerCall& WorkerCall::operator=(WorkerCall&& other) noexcept {
  if (this == &other) return *this;
  Cancel();
  job_ = std::move(other.job_);
  return *this;
}

void WorkerCall::Cancel() {
  const std::shared_ptr<Job> job = std::move(job_);
  if (job == nullptr) return;
  job->cancelled.store(true, std::memory_order_relaxed);
  const base::Task dropped = std::exchange(job->done, nullptr);
}

Worker::Worker(base::EventLoop& loop, std::string name, size_t most_waiting)
    : most_waiting_(most_waiting),
      some_finished_(loop.MakeSignal([this] { FinishCalls(); })),
      thread_(StartThread({std::move(name)}, [this] { RunWork(); })) {}

Worker::~Worker() {
  if (dropped_ != nullptr) *dropped_ = true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

absl::StatusOr<WorkerCall> Worker::Start(std::function<void()> work, base::Task done) {
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  job->done = std::move(done);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.size() >= most_waiting_) {
      return absl::ResourceExhaustedError(absl::StrCat(most_waiting_, " calls wait for the worker already"));
    }
    waiting_.push_back(job);
  }
  changed_.notify_one();
  return WorkerCall(std::move(job));
}

void Worker::RunWork() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    std::shared_ptr<Job> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (!job->cancelled.load(std::memory_order_relaxed)) job->work();
    job->work = nullptr;
    lock.lock();
    finished_.push_back(std::move(job));
    some_finished_->Raise();
  }
}

void Worker::FinishCalls() {
  std::vector<std::shared_ptr<Job>> finished;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished.swap(finished_);
  }
  bool dropped = false;
  dropped_ = &dropped;
  for (const std::shared_ptr<Job>& job : finished) {
    if (const base::Task done = std::exchange(job->done, nullptr)) done();
    if (dropped) return;
  }
  dropped_ = nullptr;
}

}  // namespace tokamak::os
