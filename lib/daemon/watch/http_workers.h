// HttpWorkers are the threads that make an HttpServer's answers: making one may wait, and the loop
// must not.
//
// Bound: the server's connections. Thread rule: made, asked, stopped and dropped on the loop's
// thread, where the answers come.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "lib/base/event_loop.h"
#include "lib/base/mutex.h"
#include "lib/daemon/watch/http_request.h"

namespace tokamak::daemon {

class HttpWorkers final {
 public:
  // Returns all bytes to send; runs on any of the threads.
  using Make = std::function<std::string(const HttpRequest& request)>;
  // Takes the answer to request `number`, on the loop.
  using Made = std::function<void(uint64_t number, std::string answer)>;

  HttpWorkers(base::EventLoop& loop, int threads, Make make, Made made);
  // Waits for answers being made.
  ~HttpWorkers();
  HttpWorkers(const HttpWorkers&) = delete;
  HttpWorkers& operator=(const HttpWorkers&) = delete;

  void Ask(uint64_t number, HttpRequest request);

 private:
  void Work();
  void TakeAnswers();

  const Make make_;
  const Made made_;
  const std::unique_ptr<base::Signal> answered_signal_;
  base::Mutex mutex_;
  base::CondVar asked_signal_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<uint64_t, HttpRequest>> asked_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<uint64_t, std::string>> answered_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace tokamak::daemon
