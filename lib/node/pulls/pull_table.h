// PullTable holds what is on its way here: one ObjectPull (object_pull.h) for each object, however
// many gets wait for it, and the queues of those that wait until a busy holder has a turn for them.
//
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/random.h"
#include "lib/directory/directory.h"
#include "lib/node/pulls/pull_context.h"
#include "lib/node/pulls/pull_waiter.h"

namespace tokamak::node {

class PullTable final : private PullContext::Table {
 public:
  using Callback = PullCallback;
  using Services = PullServices;
  using Waiter = PullWaiter;

  // All references must outlive it, and the engines' hosts must have been dropped before it is.
  PullTable(Services services, base::Random random, const PullOptions& options);
  ~PullTable();
  PullTable(const PullTable&) = delete;
  PullTable& operator=(const PullTable&) = delete;

  // Pulls `id`, or joins the pull that runs. Goes on until it worked, cannot work or the waiters
  // are gone: the deadline is the caller's. `protocol` counts for a pull that is not moving yet;
  // kAuto leaves it to the policy.
  [[nodiscard]] std::unique_ptr<Waiter> Start(const base::ObjectId& id, transport::Protocol protocol, Callback done);

  // The same for one who does not wait: the pull goes on only as long as it is under way. Where it
  // would pause, `done` is told why: kNotFound (nobody has this content, or it was deleted),
  // kResourceExhausted (no room), kAlreadyExists or kFailedPrecondition (the id is in use here, or
  // another content has it), kUnavailable (anything else: later it may work). What ok means is as
  // above: of which generation is for the caller to see. `done` must not drop other waiters of
  // `id`.
  [[nodiscard]] std::unique_ptr<Waiter> StartOnce(const base::ObjectVersion& version, Callback done);

  // See Copies.
  bool IsComing(const base::ObjectVersion& version) const;
  void OnWithdraw(const base::ObjectVersion& version);
  // A pull of `version` will not seal it. Those who wait for its id go on waiting, for another
  // content.
  void Drop(const base::ObjectVersion& version);

  // Nothing where the object is not on its way here.
  std::optional<PullProgress> Progress(const base::ObjectId& id) const;

  size_t running() const override { return pulls_.size(); }
  // Of these the ones of which no holder is known: they wait in the directory, or are about to.
  size_t looked_for() const { return context_.looked_for; }
  const PullCounters& counters() const { return context_.counters; }
  uint64_t bundles_sent() const { return context_.bundles.sent(); }

 private:
  std::unique_ptr<Waiter> AddWaiter(const base::ObjectId& id, transport::Protocol protocol, base::Generation once,
                                    Callback done);
  ObjectPull* Find(const base::ObjectId& id) const;
  void GiveTurns();

  // PullContext::Table
  void Enqueue(const directory::NodeId& holder, ObjectPull& pull) override;
  void Dequeue(const directory::NodeId& holder, const ObjectPull& pull) override;
  void SlotFreed(const directory::NodeId& holder) override;
  std::unique_ptr<ObjectPull> TakeOut(const base::ObjectId& id) override;

  const Services services_;
  const PullOptions options_;
  PullContext context_;
  uint64_t last_number_ = 0;  // of a pull
  // A pull that nobody waits for stays here until its engine has let go of the memory.
  std::map<base::ObjectId, std::unique_ptr<ObjectPull>> pulls_;
  std::map<directory::NodeId, std::map<uint64_t, ObjectPull*>> queues_;  // by holder, in the order that pulls began
  std::set<directory::NodeId> freed_;                                    // holders with a slot to give
  base::Timer giving_turns_;
};

}  // namespace tokamak::node
