// PullWaiters are all who wait for one pull, in the order in which they came. Some do not wait for
// content that is not there yet: they want one generation, and hear at once that it cannot come.
//
// A waiter is on the list until it is dropped or the end is reported to it.
//
// Thread rule: the node's control loop.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/generation.h"
#include "lib/node/pulls/pull_waiter.h"

namespace tokamak::node {

class PullWaiters final {
 public:
  class Owner {
   public:
    // The last waiter was dropped. It may destroy the list.
    virtual void OnNobodyWaits() = 0;
    // See PullWaiter.
    virtual absl::Status trouble() const = 0;

   protected:
    ~Owner() = default;
  };

  // `owner` must outlive it. Waiters may outlive it, and hear nothing then.
  explicit PullWaiters(Owner& owner) : owner_(owner) {}
  ~PullWaiters();
  PullWaiters(const PullWaiters&) = delete;
  PullWaiters& operator=(const PullWaiters&) = delete;

  bool empty() const { return waiters_.empty(); }

  // `once`: the generation wanted by a waiter that does not wait; kNoGeneration: it waits.
  std::unique_ptr<PullWaiter> Add(base::Generation once, PullCallback done);

  // Reports `code` to the waiters that do not wait, except those for generation `but`. Returns
  // false if the last waiter is one of these: it stays, and nobody else waits. Most pulls have
  // none, and no status is made for them. Callbacks may drop their own waiter, and no other.
  [[nodiscard]] bool TellWhoDoesNotWait(absl::StatusCode code, absl::string_view why, base::Generation but);

  // Reports the end to all, and `via`, the way the object came. The list may not be destroyed
  // meanwhile.
  void TellAll(const absl::Status& status, Via via);

 private:
  class Waiter final : public PullWaiter {
   public:
    Waiter(PullWaiters& list, base::Generation once, PullCallback done)
        : once_(once), list_(&list), done_(std::move(done)) {}
    ~Waiter() override;
    absl::Status trouble() const override { return list_ == nullptr ? absl::OkStatus() : list_->owner_.trouble(); }
    Via via() const override { return via_; }
    bool waits() const { return once_ == base::kNoGeneration; }
    base::Generation once() const { return once_; }

    // Reports the end to a waiter that is off the list. The call may drop the waiter.
    void Tell(const absl::Status& status, Via via);
    // Takes it off without a report: the node ends.
    void Orphan() { list_ = nullptr; }

    base::Link<Waiter> link;

   private:
    const base::Generation once_;
    PullWaiters* list_;  // null: off the list
    Via via_ = Via::kLocal;
    PullCallback done_;
  };

  Owner& owner_;
  base::IntrusiveList<Waiter, &Waiter::link> waiters_;
};

}  // namespace tokamak::node
