#include "lib/verbs/ibv/tcp/route_searches.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "lib/os/thread.h"

namespace tokamak::verbs::ibv {

struct RouteSearches::Shared {
  std::atomic<bool> ended{false};  // true: the thread only returns
  base::Mutex mutex;
  base::Signal* signal ABSL_GUARDED_BY(mutex) = nullptr;  // null once dropped
  absl::Status result ABSL_GUARDED_BY(mutex);             // set before the signal
};

class RouteSearches::Handle final : public Search {
 public:
  Handle(base::EventLoop& loop, std::shared_ptr<Shared> shared, std::function<void(const absl::Status&)> found)
      : shared_(std::move(shared)), found_(std::move(found)), signal_(loop.MakeSignal([this] { Tell(); })) {
    shared_->signal = signal_.get();
  }
  ~Handle() override {
    const base::MutexLock lock(shared_->mutex);
    shared_->signal = nullptr;
  }

 private:
  void Tell() {
    absl::Status result;
    {
      const base::MutexLock lock(shared_->mutex);
      result = shared_->result;
    }
    const std::function<void(const absl::Status&)> found = std::move(found_);  // it may drop this
    found(result);
  }

  const std::shared_ptr<Shared> shared_;
  std::function<void(const absl::Status&)> found_;
  const std::unique_ptr<base::Signal> signal_;
};

RouteSearches::~RouteSearches() {
  for (Running& one : running_) one.thread.join();
}

std::unique_ptr<RouteSearches::Search> RouteSearches::Start(base::EventLoop& loop, const PeerPort& peer,
                                                            std::function<void(const absl::Status&)> found) {
  const base::MutexLock lock(mutex_);
  const auto ended =
      std::partition(running_.begin(), running_.end(), [](const Running& one) { return !one.shared->ended.load(); });
  std::for_each(ended, running_.end(), [](Running& one) { one.thread.join(); });
  running_.erase(ended, running_.end());
  if (running_.size() >= kMaxSearches) return nullptr;
  auto shared = std::make_shared<Shared>();
  auto handle = std::make_unique<Handle>(loop, shared, std::move(found));
  running_.push_back({shared, os::StartThread({"ibv-route"}, [find = find_, peer, shared] {
                        const absl::Status result = find(peer);
                        {
                          const base::MutexLock guard(shared->mutex);
                          shared->result = result;
                          if (shared->signal != nullptr) shared->signal->Raise();
                        }
                        shared->ended = true;
                      })});
  return handle;
}

}  // namespace tokamak::verbs::ibv
