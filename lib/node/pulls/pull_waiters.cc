#include "lib/node/pulls/pull_waiters.h"

namespace tokamak::node {

PullWaiters::Waiter::~Waiter() {
  if (list_ == nullptr) return;
  list_->waiters_.Remove(this);
  if (list_->empty()) list_->owner_.OnNobodyWaits();
}

void PullWaiters::Waiter::Tell(const absl::Status& status, Via via) {
  via_ = via;
  list_ = nullptr;
  const PullCallback done = std::move(done_);
  done(status);
}

PullWaiters::~PullWaiters() {
  while (!waiters_.empty()) waiters_.PopFront()->Orphan();
}

std::unique_ptr<PullWaiter> PullWaiters::Add(base::Generation once, PullCallback done) {
  auto waiter = std::make_unique<Waiter>(*this, once, std::move(done));
  waiters_.PushBack(waiter.get());
  return waiter;
}

bool PullWaiters::TellWhoDoesNotWait(absl::StatusCode code, absl::string_view why, base::Generation but) {
  for (Waiter* next = waiters_.first(); next != nullptr;) {
    Waiter& one = *std::exchange(next, waiters_.Next(next));
    if (one.waits() || one.once() == but) continue;
    if (waiters_.size() == 1) return false;
    waiters_.Remove(&one);
    one.Tell(absl::Status(code, why), Via::kLocal);
  }
  return true;
}

void PullWaiters::TellAll(const absl::Status& status, Via via) {
  while (!waiters_.empty()) waiters_.PopFront()->Tell(status, via);
}

}  // namespace tokamak::node
