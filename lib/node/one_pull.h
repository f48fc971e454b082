// One object on its way here. Part of Pulls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "lib/base/intrusive_list.h"
#include "lib/node/pull.h"

namespace tokamak::node {

// On its pull's list until it is dropped or told the end.
class Pulls::WaiterHandle final : public Waiter {
 public:
  WaiterHandle(Pull& pull, Callback done) : pull_(&pull), done_(std::move(done)) {}
  ~WaiterHandle() override;
  absl::Status trouble() const override;

  // It is off the list. May be dropped in the call.
  void Tell(const absl::Status& status);
  // The same, where nobody is told: the node ends.
  void Orphan() { pull_ = nullptr; }

  base::Link<WaiterHandle> link;

 private:
  Pull* pull_;  // null: off the list
  Callback done_;
};

class Pulls::Pull final : public std::enable_shared_from_this<Pull> {
 public:
  Pull(Pulls& pulls, const base::ObjectId& id);
  ~Pull();

  void Begin() { Enter(State::kLocating); }

  std::unique_ptr<Waiter> AddWaiter(transport::Protocol protocol, Callback done);
  void DropWaiter(WaiterHandle& waiter);

  // A holder that it queues for has a slot.
  void TakeTurn();

  uint64_t number() const { return number_; }
  const absl::Status& trouble() const { return trouble_; }

 private:
  static constexpr size_t kFewHolders = 2;  // are tried for most pulls, and need no memory of their own

  enum class State { kNew, kLocating, kBackOff, kRefreshing, kQueued, kMoving, kOver };

  // What may be done about the holders that were not tried in this round.
  struct Choice {
    directory::NodeId ready;  // the best of these; empty: none
    bool look_up = false;     // some address is unknown or suspect
    std::vector<directory::NodeId> busy;
  };

  void Enter(State state);
  void Leave();
  bool Tried(const directory::NodeId& holder) const {
    return std::find(tried_.begin(), tried_.end(), holder) != tried_.end();
  }
  void Locate();
  void Located(absl::StatusOr<directory::ObjectInfo> info);
  void TryNextHolder();
  Choice Choose();
  void RefreshPeers();
  void BackOff();
  void Queue(const std::vector<directory::NodeId>& holders);
  void MoveFrom(const directory::NodeId& holder);
  transport::PullRequest RequestTo(const Peers::Peer& peer) const;
  void NoPlace(const absl::Status& status);
  void Moved(const absl::Status& status, const transport::TransferReport& report);
  void Arrived(const transport::TransferReport& report);
  void GiveUpPlace();
  bool IsHere() const { return pulls_.store_.Contains(id_); }
  void Finish(const absl::Status& status);

  Pulls& pulls_;
  const base::ObjectId id_;
  const uint64_t number_;
  const store::Owner owner_;
  State state_ = State::kNew;
  transport::Protocol protocol_ = transport::Protocol::kAuto;
  absl::Status trouble_;
  base::Timer timer_;  // kBackOff, kQueued
  base::Duration retry_delay_;
  bool asked_ = false;  // the directory has answered once: from then on it is asked to wait
  directory::ObjectInfo info_;
  absl::InlinedVector<directory::NodeId, kFewHolders> tried_;  // in this round; at most kMaxHolders
  bool refreshed_ = false;                                     // in this round
  std::vector<directory::NodeId> queued_for_;                  // kQueued
  directory::NodeId holder_;                                   // kMoving
  EngineLink* engine_ = nullptr;                               // kMoving
  uint64_t token_ = 0;                                         // kMoving
  base::IntrusiveList<WaiterHandle, &WaiterHandle::link> waiters_;
};

}  // namespace tokamak::node
