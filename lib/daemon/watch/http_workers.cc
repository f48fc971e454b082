#include "lib/daemon/watch/http_workers.h"

#include "lib/os/thread.h"

namespace tokamak::daemon {

HttpWorkers::HttpWorkers(base::EventLoop& loop, int threads, Make make, Made made)
    : make_(std::move(make)), made_(std::move(made)), answered_signal_(loop.MakeSignal([this] { TakeAnswers(); })) {
  for (int i = 0; i < threads; ++i) threads_.push_back(os::StartThread({"tokamak-http"}, [this] { Work(); }));
}

HttpWorkers::~HttpWorkers() {
  {
    const base::MutexLock lock(mutex_);
    stopped_ = true;
  }
  asked_signal_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void HttpWorkers::Ask(uint64_t number, HttpRequest request) {
  {
    const base::MutexLock lock(mutex_);
    asked_.emplace_back(number, std::move(request));
  }
  asked_signal_.NotifyOne();
}

void HttpWorkers::Work() {
  const base::MutexLock lock(mutex_);
  for (;;) {
    while (!stopped_ && asked_.empty()) asked_signal_.Wait(mutex_);
    if (stopped_) return;
    const std::pair<uint64_t, HttpRequest> asked = std::move(asked_.front());
    asked_.pop_front();
    std::string answer = mutex_.RunUnlocked([&] { return make_(asked.second); });
    answered_.emplace_back(asked.first, std::move(answer));
    answered_signal_->Raise();
  }
}

void HttpWorkers::TakeAnswers() {
  std::vector<std::pair<uint64_t, std::string>> answered;
  {
    const base::MutexLock lock(mutex_);
    answered.swap(answered_);
  }
  for (auto& [number, answer] : answered) made_(number, std::move(answer));
}

}  // namespace tokamak::daemon
