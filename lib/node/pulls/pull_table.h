// PullTable holds one ObjectPull (object_pull.h) for each object on its way here, however many gets
// wait for it, and the queues of pulls for a turn at a busy holder.
//
// Thread rule: the control loop.
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
  using Needs = PullNeeds;
  using Waiter = PullWaiter;

  // All must outlive it, the engines' hosts excepted, which are dropped before it.
  PullTable(Needs needs, base::Random random, const PullOptions& options);
  ~PullTable();
  PullTable(const PullTable&) = delete;
  PullTable& operator=(const PullTable&) = delete;

  // Pulls `id`, or joins the running pull, until it succeeds, cannot succeed or has no waiters:
  // deadlines are the caller's. `protocol` counts until bytes move; kAuto: the policy's choice.
  [[nodiscard]] std::unique_ptr<Waiter> Start(const base::ObjectId& id, transport::Protocol protocol, Callback done);

  // The same without waiting: a pause ends it with the reason. kNotFound: nobody has this content,
  // or it was deleted. kResourceExhausted: no room. kAlreadyExists or kFailedPrecondition: the id
  // is in use here, or has another content. kUnavailable: anything else, which may pass. ok: of a
  // generation that the caller checks. `done` must not drop other waiters of `id`.
  [[nodiscard]] std::unique_ptr<Waiter> StartOnce(const base::ObjectVersion& version, Callback done);

  // See Copies.
  bool IsComing(const base::ObjectVersion& version) const;
  void OnWithdraw(const base::ObjectVersion& version);
  // Keeps a pull of `version` from sealing it; its waiters go on, for another content.
  void Drop(const base::ObjectVersion& version);

  // nullopt: no pull.
  std::optional<PullProgress> Progress(const base::ObjectId& id) const;

  size_t running() const override { return pulls_.size(); }
  // Pulls waiting in the directory for a holder, or about to.
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

  const Needs needs_;
  const PullOptions options_;
  PullContext context_;
  uint64_t last_number_ = 0;
  // A pull without waiters stays until its engine has let go of the memory.
  std::map<base::ObjectId, std::unique_ptr<ObjectPull>> pulls_;
  std::map<directory::NodeId, std::map<uint64_t, ObjectPull*>> queues_;  // by holder, oldest first
  std::set<directory::NodeId> freed_;                                    // holders with a slot to give
  base::Timer giving_turns_;
};

}  // namespace tokamak::node
