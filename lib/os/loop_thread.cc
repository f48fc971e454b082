#include "lib/os/loop_thread.h"

#include <glog/logging.h>

#include <utility>

namespace tokamak::os {

LoopThread::LoopThread(ThreadOptions options, Detection detection)
    : loop_(detection),
      asked_(loop_.MakeSignal([this] { RunCalls(); })),
      thread_(StartThread(std::move(options), [this] { loop_.Run(); })) {}

LoopThread::~LoopThread() { Stop(); }

void LoopThread::CallOn(absl::FunctionRef<void()> call) {
  if (!thread_.joinable() || thread_.get_id() == std::this_thread::get_id()) return call();
  Call asked{call};
  std::unique_lock<std::mutex> lock(mutex_);
  calls_.push_back(&asked);
  asked_->Raise();
  done_.wait(lock, [&] { return asked.done; });
}

void LoopThread::Stop() {
  if (!thread_.joinable()) return;
  CHECK(thread_.get_id() != std::this_thread::get_id()) << "a loop's thread cannot wait for its own end";
  loop_.Stop();
  thread_.join();
}

void LoopThread::RunCalls() {
  std::vector<Call*> calls;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls.swap(calls_);
  }
  for (Call* call : calls) {
    call->run();
    const std::lock_guard<std::mutex> lock(mutex_);
    call->done = true;
    done_.notify_all();
  }
}

}  // namespace tokamak::os
