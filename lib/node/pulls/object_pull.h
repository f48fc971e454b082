// ObjectPull brings one object of another node here: it asks the directory who holds it, makes
// room, has an engine move the bytes and tries the next holder until it worked or nobody waits any
// more.
//
//   locating -> moving -> (registering) -> sealed
//   (hinted)  ^   |   \___ next holder
//     ^       |   +------> back-off
//     |       +----------- queued, bundled
//     +------------------- back-off
//
//   hinted:       a place that is known is tried, while asking
//   bundled:      a small one is asked for together with others of its holder
//   back-off:     all holders failed, or there is no room
//   queued:       the holders are busy with other pulls of ours
//   refreshing:   a holder's address is not known, or no longer right
//   registering:  all is here; the directory, or the holder, has not answered
//
// A small object that the directory's own node holds comes with its answer; and where the place is
// known, the holder brings it, and vouches for the copy. Then there is nothing to move, and it is
// sealed at once.
//
// Law: an object that is only half here is never seen: it is created, pinned, and sealed or aborted
//      when the engine has said that nobody touches its memory any more.
// A transfer that was cut goes on from what has arrived, from the next holder as well.
//
// Law: a copy is sealed only when the directory has entered this node as one that may hold it, so
//      that a deletion finds it; or when the holder vouches for it, because the directory is away,
//      slow, or was not asked (docs/consistency.md).
// Thread rule: the node's control loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/trace.h"
#include "lib/node/pulls/pull_table.h"

namespace tokamak::node {

class ObjectPull final {
 public:
  ObjectPull(PullTable& table, const base::ObjectId& id);
  ~ObjectPull();
  ObjectPull(const ObjectPull&) = delete;
  ObjectPull& operator=(const ObjectPull&) = delete;

  void Begin() { Enter(State::kLocating); }

  // `once`: the generation that one waits for who does not wait (PullTable::StartOnce);
  // kNoGeneration: waits.
  std::unique_ptr<PullTable::Waiter> AddWaiter(transport::Protocol protocol, base::Generation once,
                                               PullTable::Callback done);

  // A holder that it queues for has a slot.
  void TakeTurn();

  // See PullTable.
  bool IsComing(const base::ObjectVersion& version) const {
    if (version.generation == base::kNoGeneration) return registered_ || locate_ != nullptr;
    return registered_ && version == version_;
  }
  void OnWithdraw(const base::ObjectVersion& version);
  void Drop(const base::ObjectVersion& version);

  PullProgress progress() const;

  uint64_t number() const { return number_; }
  // What is in its way, as far as that is known.
  absl::Status trouble() const;

 private:
  static constexpr size_t kFewHolders = 2;  // are tried for most pulls, and need no memory of their own

  enum class State { kNew, kLocating, kHinted, kBackOff, kRefreshing, kQueued, kBundled, kMoving, kRegistering, kOver };

  // On its pull's list until it is dropped or told the end.
  class WaiterHandle final : public PullTable::Waiter {
   public:
    WaiterHandle(ObjectPull& pull, base::Generation once, PullTable::Callback done)
        : once_(once), pull_(&pull), done_(std::move(done)) {}
    ~WaiterHandle() override;
    absl::Status trouble() const override { return pull_ == nullptr ? absl::OkStatus() : pull_->trouble(); }
    Via via() const override { return via_; }
    bool waits() const { return once_ == base::kNoGeneration; }
    base::Generation once() const { return once_; }

    // It is off the list. May be dropped in the call.
    void Tell(const absl::Status& status);
    // The same, where nobody is told: the node ends.
    void Orphan() { pull_ = nullptr; }

    base::Link<WaiterHandle> link;

   private:
    const base::Generation once_;
    ObjectPull* pull_;  // null: off the list
    Via via_ = Via::kLocal;
    PullTable::Callback done_;
  };

  // What may be done about the holders that were not tried in this round.
  struct Choice {
    directory::NodeId ready;  // the best of these; empty: none
    bool look_up = false;     // some address is unknown or suspect
    std::vector<directory::NodeId> busy;
  };

  void Enter(State state);
  void Record(base::Phase phase) const;
  void Leave();
  void DropWaiter(WaiterHandle& waiter);
  bool TellWhoDoesNotWait(absl::StatusCode code, absl::string_view why, base::Generation but = base::kNoGeneration);
  bool Tried(const directory::NodeId& holder) const {
    return std::find(tried_.begin(), tried_.end(), holder) != tried_.end();
  }
  void Locate();
  // Of a content that was not deleted.
  const directory::LocatedObject* KnownPlace(bool fresh) const;
  void TryKnownPlace();
  void TryAnyKnownPlace();
  bool AskToBring();
  bool IsSmall() const;
  void AskDirectory(base::Duration wait);
  void Located(const absl::StatusOr<directory::LocatedObject>& info);
  void Registered(const absl::StatusOr<directory::LocatedObject>& info);
  void Take(const directory::LocatedObject& info);
  void TakeContents(absl::Span<const uint8_t> contents);
  void TryNextHolder();
  Choice Choose();
  void RefreshPeers();
  void BackOff();
  void Queue(const std::vector<directory::NodeId>& holders);
  bool MayBeBundled() const;
  void AskInBundle(const directory::NodeId& holder);
  void MoveFrom(const directory::NodeId& holder);
  bool IsBulk() const;
  void RestBulk(const absl::Status& status);
  bool MeetsForBulk(const Peers::Peer& peer) const;
  transport::PullRequest RequestTo(const Peers::Peer& peer, uint64_t turn) const;
  void NoPlace(const absl::Status& status);
  void Moved(const absl::Status& status, const transport::TransferReport& report);
  void Arrived();
  void NotRegistered();
  void AskToVouch();
  void DoesNotVouch();
  void SealHere();
  void StartOver();
  absl::Status ReservePlace();
  void GiveUpPlace();
  bool IsHere() const { return services_.store.Contains(id_); }
  void Unregister();
  void Finish(const absl::Status& status);

  PullTable& table_;
  const PullTable::Services& services_;
  const base::ObjectId id_;
  const uint64_t number_;
  const store::Owner owner_;
  State state_ = State::kNew;
  transport::Protocol protocol_ = transport::Protocol::kAuto;
  absl::Status trouble_;
  base::Timer timer_;  // in any state but kMoving
  base::Duration retry_delay_;
  base::Pending locate_;                          // kLocating; later, while this node is being entered as coming
  base::Time patient_until_;                      // from then on, what is possible without its answer is done
  bool answered_ = false;                         // the directory has answered once: from then on it is asked to wait
  bool place_used_ = false;                       // a place that was known was tried: it is not tried twice
  bool asked_to_bring_ = false;                   // a holder was asked to bring it: none is asked twice
  bool was_bundled_ = false;                      // the same, together with others
  std::optional<base::ObjectVersion> withdrawn_;  // since the directory was asked last
  directory::LocatedObject info_;
  base::ObjectVersion version_;  // what is being pulled
  bool registered_ = false;      // the directory has entered this node as coming with version_
  bool dropped_ = false;         // version_ must not be sealed
  base::Pending vouching_;       // kRegistering, kHinted, kBundled: the holder is asked to vouch for it, or to bring it
  base::Time vouched_until_;     // it does, unless registered_
  absl::InlinedVector<directory::NodeId, kFewHolders> tried_;  // in this round; at most kMaxHoldersNamed
  bool refreshed_ = false;                                     // in this round
  base::Pending refresh_;                                      // kRefreshing
  std::vector<directory::NodeId> queued_for_;                  // kQueued
  directory::NodeId holder_;                                   // kMoving, and whoever brings it
  bool bulk_ = false;                                          // kMoving: between engines for bulk
  EngineLink* engine_ = nullptr;                               // kMoving
  uint64_t token_ = 0;                                         // kMoving
  transport::TransferReport report_;                           // kRegistering
  Via via_ = Via::kLocal;                                      // kOver
  // The unsealed copy of version_, pinned: while it is moving, and between attempts as long as
  // something of it has arrived.
  std::optional<store::Location> place_;
  uint64_t arrived_ = 0;            // bytes of it, from the start, that are certainly right
  std::atomic<uint64_t> moved_{0};  // bytes of it; while it is moving, the engine counts
  base::IntrusiveList<WaiterHandle, &WaiterHandle::link> waiters_;
};

}  // namespace tokamak::node
