// One object on its way here. Part of Pulls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "lib/node/pull.h"

namespace tokamak::node {

class Pulls::Pull final : public std::enable_shared_from_this<Pull> {
 public:
  Pull(Pulls& pulls, const base::ObjectId& id);
  ~Pull();

  void Begin() { Enter(State::kLocating); }

  std::unique_ptr<Waiter> AddWaiter(transport::Protocol protocol, Callback done);
  void DropWaiter(uint64_t number);

  // A holder that it queues for has a slot.
  void TakeTurn();

  uint64_t number() const { return number_; }
  const absl::Status& trouble() const { return trouble_; }

 private:
  enum class State { kNew, kLocating, kBackOff, kRefreshing, kQueued, kMoving, kOver };

  // What may be done about the holders that were not tried in this round.
  struct Choice {
    directory::NodeId ready;  // the best of these; empty: none
    bool look_up = false;     // some address is unknown or suspect
    std::vector<directory::NodeId> busy;
  };

  void Enter(State state);
  void Leave();
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
  std::set<directory::NodeId> tried_;          // in this round
  bool refreshed_ = false;                     // in this round
  std::vector<directory::NodeId> queued_for_;  // kQueued
  directory::NodeId holder_;                   // kMoving
  EngineLink* engine_ = nullptr;               // kMoving
  uint64_t token_ = 0;                         // kMoving
  uint64_t last_waiter_ = 0;
  std::map<uint64_t, Callback> waiters_;
};

}  // namespace tokamak::node
