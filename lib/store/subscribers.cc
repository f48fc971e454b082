#include "lib/store/subscribers.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/reuse.h"

namespace tokamak::store {

class Subscribers::Subscriber final : public Subscription {
 public:
  Subscriber(Subscribers& all, EventCallback callback)
      : all_(all),
        all_gone_(all.lifetime_.Watched()),
        callback_(std::make_shared<const EventCallback>(std::move(callback))) {
    all_.subscribers_.push_back(this);
  }

  ~Subscriber() override {
    if (all_gone_.over()) return;
    auto& subscribers = all_.subscribers_;
    subscribers.erase(std::find(subscribers.begin(), subscribers.end(), this));
  }

  void Enqueue(const Event& event) {
    events_.push_back(event);
    CallSoon();
  }

  void CallSoon() override {
    if (!all_gone_.over() && !timer_.armed()) timer_ = all_.loop_.Post([this] { Deliver(); });
  }

 private:
  void Deliver() {
    if (all_gone_.over()) return;
    const std::shared_ptr<const EventCallback> callback = callback_;
    std::vector<Event> events = std::exchange(events_, std::move(spare_));
    const base::Lifetime::Watch gone = lifetime_.Watched();
    (*callback)(events);  // may destroy this
    if (gone.over()) return;
    base::EmptyForReuse(events);
    spare_ = std::move(events);
  }

  Subscribers& all_;
  const base::Lifetime::Watch all_gone_;
  const std::shared_ptr<const EventCallback> callback_;
  std::vector<Event> events_;
  std::vector<Event> spare_;  // empty
  base::Timer timer_;
  const base::Lifetime lifetime_;
};

std::unique_ptr<Subscription> Subscribers::Add(EventCallback callback) {
  return std::make_unique<Subscriber>(*this, std::move(callback));
}

void Subscribers::Publish(const Event& event) {
  for (Subscriber* subscriber : subscribers_) subscriber->Enqueue(event);
}

}  // namespace tokamak::store
