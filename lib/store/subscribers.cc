#include "lib/store/subscribers.h"

#include <algorithm>
#include <utility>

#include "lib/base/reuse.h"

namespace tokamak::store {

class Subscribers::Subscriber final : public Handle {
 public:
  Subscriber(Subscribers& all, EventCallback callback) : all_(&all), delivery_(std::make_shared<Delivery>()) {
    delivery_->callback = std::move(callback);
    all_->subscribers_.push_back(this);
  }

  ~Subscriber() override {
    if (all_ == nullptr) return;
    auto& subscribers = all_->subscribers_;
    subscribers.erase(std::find(subscribers.begin(), subscribers.end(), this));
  }

  void Enqueue(const Event& event) {
    events_.push_back(event);
    if (!timer_.armed()) timer_ = all_->loop_.Post([this] { Deliver(); });
  }

  void Orphan() {
    all_ = nullptr;
    timer_.Cancel();
  }

 private:
  // What outlives a subscriber that is dropped inside its own callback.
  struct Delivery {
    EventCallback callback;
    std::vector<Event> events;
  };

  void Deliver() {
    const std::shared_ptr<Delivery> delivery = delivery_;
    delivery->events.swap(events_);
    delivery->callback(delivery->events);  // may destroy this
    base::EmptyForReuse(delivery->events);
  }

  Subscribers* all_;
  const std::shared_ptr<Delivery> delivery_;
  std::vector<Event> events_;
  base::Timer timer_;
};

Subscribers::~Subscribers() {
  for (Subscriber* subscriber : subscribers_) subscriber->Orphan();
}

std::unique_ptr<Handle> Subscribers::Add(EventCallback callback) {
  return std::make_unique<Subscriber>(*this, std::move(callback));
}

void Subscribers::Publish(const Event& event) {
  for (Subscriber* subscriber : subscribers_) subscriber->Enqueue(event);
}

}  // namespace tokamak::store
