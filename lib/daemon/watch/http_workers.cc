#include "lib/daemon/watch/http_workers.h"

#include "lib/os/thread.h"

namespace tokamak::daemon {

HttpWorkers::HttpWorkers(base::EventLoop& loop, int threads, Make make, Made made)
    : make_(std::move(make)), made_(std::move(made)), answered_signal_(loop.MakeSignal([this] { TakeAnswers(); })) {
  for (int i = 0; i < threads; ++i) threads_.push_back(os::StartThread({"tokamak-http"}, [this] { Work(); }));
}

HttpWorkers::~HttpWorkers() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  asked_signal_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HttpWorkers::Ask(uint64_t number, HttpRequest request) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_.emplace_back(number, std::move(request));
  }
  asked_signal_.notify_one();
}

void HttpWorkers::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    while (!stopped_ && asked_.empty()) asked_signal_.wait(lock);
    if (stopped_) return;
    const auto [number, request] = std::move(asked_.front());
    asked_.pop_front();
    lock.unlock();
    std::string answer = make_(request);
    lock.lock();
    answered_.emplace_back(number, std::move(answer));
    answered_signal_->Raise();
  }
}

void HttpWorkers::TakeAnswers() {
  std::vector<std::pair<uint64_t, std::string>> answered;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    answered.swap(answered_);
  }
  for (auto& [number, answer] : answered) made_(number, std::move(answer));
}

}  // namespace tokamak::daemon
