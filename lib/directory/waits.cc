#include "lib/directory/waits.h"

#include <memory>

namespace tokamak::directory {

Waits::~Waits() {
  for (auto& [id, waiting] : waiting_) {
    while (!waiting.empty()) {
      Wait* wait = waiting.PopFront();
      wait->waits = nullptr;
      wait->timeout.Cancel();
    }
  }
}

base::Pending Waits::Add(const Asker& asker, std::optional<base::Duration> wait, size_t* count,
                         Directory::LocateCallback done) {
  auto added = std::make_unique<Wait>();
  added->waits = this;
  added->asker = asker;
  added->count = count;
  added->done = std::move(done);
  if (wait.has_value()) {
    added->timeout = loop_.RunAfter(*wait, [this, waiting = added.get()] {
      Remove(*waiting);
      const Directory::LocateCallback callback = std::move(waiting->done);
      callback(absl::NotFoundError("no node holds the object"));
    });
  }
  waiting_[asker.id].PushBack(added.get());
  ++size_;
  if (count != nullptr) ++*count;
  return added;
}

void Waits::Wake(const base::ObjectId& id) {
  const auto waiting = waiting_.find(id);
  Wait* wait = waiting == waiting_.end() ? nullptr : waiting->second.first();
  while (wait != nullptr) {
    Result result = find_(wait->asker);
    if (!result.has_value()) return;
    Wait* const next = base::IntrusiveList<Wait, &Wait::link>::Next(wait);
    Remove(*wait);
    wait->answer = answers_.Add(
        [done = std::move(wait->done), result = *std::move(result)]() mutable { done(std::move(result)); });
    wait = next;
  }
}

bool Waits::AskAgain(bool first) {
  auto next = first ? waiting_.begin() : waiting_.upper_bound(asked_);
  for (size_t asked = 0; asked < kAskedAtOnce && next != waiting_.end(); ++asked) {
    asked_ = next->first;
    ++next;  // Wake may end this list
    Wake(base::ObjectId(asked_));
  }
  return next != waiting_.end();
}

void Waits::Remove(Wait& wait) {
  const auto waiting = waiting_.find(wait.asker.id);
  waiting->second.Remove(&wait);
  if (waiting->second.empty()) waiting_.erase(waiting);
  --size_;
  if (wait.count != nullptr) --*wait.count;
  wait.waits = nullptr;
  wait.timeout.Cancel();
}

}  // namespace tokamak::directory
