#include "lib/verbs/device_watches.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/lifetime.h"
#include "lib/base/log.h"

namespace tokamak::verbs {
namespace {

bool Same(const DeviceEventInfo& a, const DeviceEventInfo& b) {
  return a.event == b.event && a.queue_pair_number == b.queue_pair_number && a.shared_receives == b.shared_receives;
}

}  // namespace

class DeviceWatches::Watch final : public DeviceWatch {
 public:
  Watch(std::shared_ptr<void> keep, DeviceWatches& all, base::EventLoop& loop, DeviceEventHandler handler)
      : keep_(std::move(keep)),
        all_(all),
        handler_(std::make_shared<DeviceEventHandler>(std::move(handler))),
        signal_(loop.MakeSignal([this] { Deliver(); })) {
    const base::MutexLock lock(all_.mutex_);
    all_.watches_.push_back(this);
  }

  ~Watch() override {
    const base::MutexLock lock(all_.mutex_);
    std::vector<Watch*>& watches = all_.watches_;
    watches.erase(std::remove(watches.begin(), watches.end(), this), watches.end());
  }

  void Tell(const DeviceEventInfo& event) {
    all_.mutex_.AssertHeld();  // all_ is the caller
    // Up, down, up is three.
    if (!waiting_.empty() && Same(waiting_.back(), event)) return;
    if (waiting_.size() >= kMaxWaiting) {
      LOG(ERROR) << "a device's watch does not listen: an event is lost";
      return;
    }
    waiting_.push_back(event);
    signal_->Raise();
  }

  void Forget(const SharedReceiveQueue* handle) {
    all_.mutex_.AssertHeld();  // all_ is the caller
    const auto names_it = [&](const DeviceEventInfo& info) { return info.shared_receives == handle; };
    waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), names_it), waiting_.end());
  }

 private:
  void Deliver() {
    const base::Lifetime::Watch watch = lifetime_.Watched();
    const std::shared_ptr<DeviceEventHandler> handler = handler_;
    DeviceEventInfo event;
    // Later events raise the signal again.
    for (size_t left = waiting(); left > 0 && Next(&event); --left) {
      (*handler)(event);
      if (watch.over()) return;
    }
  }

  size_t waiting() const {
    const base::MutexLock lock(all_.mutex_);
    return waiting_.size();
  }

  // One event at a time: the handler may drop what later ones are about.
  bool Next(DeviceEventInfo* event) {
    const base::MutexLock lock(all_.mutex_);
    if (waiting_.empty()) return false;
    *event = waiting_.front();
    waiting_.pop_front();
    return true;
  }

  const std::shared_ptr<void> keep_;
  DeviceWatches& all_;
  const std::shared_ptr<DeviceEventHandler> handler_;
  std::deque<DeviceEventInfo> waiting_ ABSL_GUARDED_BY(all_.mutex_);
  const base::Lifetime lifetime_;
  const std::unique_ptr<base::Signal> signal_;
};

DeviceWatches::~DeviceWatches() { CHECK(watches_.empty()) << "a watch keeps its device"; }

std::unique_ptr<DeviceWatch> DeviceWatches::Add(std::shared_ptr<void> keep, base::EventLoop& loop,
                                                DeviceEventHandler handler) {
  return std::make_unique<Watch>(std::move(keep), *this, loop, std::move(handler));
}

void DeviceWatches::Tell(const DeviceEventInfo& event) {
  const base::MutexLock lock(mutex_);
  for (Watch* watch : watches_) watch->Tell(event);
}

void DeviceWatches::Forget(const SharedReceiveQueue* handle) {
  const base::MutexLock lock(mutex_);
  for (Watch* watch : watches_) watch->Forget(handle);
}

}  // namespace tokamak::verbs
