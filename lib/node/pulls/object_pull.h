// ObjectPull brings one object of another node here: it asks the directory who holds it, makes
// room, has an engine move the bytes, and tries holder after holder until one succeeds or nobody
// waits any more.
//
// Its states: pull_state.h. Its parts: the standing with the directory (pull_registration.h), the
// round through the holders (pull_holders.h), the room in the store (pull_place.h), the transfer
// (pull_attempt.h), and who waits (pull_waiters.h).
//
// A small object that the directory's own node holds comes with the directory's answer; if the
// place is remembered, the holder brings it and vouches for the copy. Either is sealed at once,
// without a transfer.
//
// Law: a partial object is never seen: it is created, pinned, and sealed or aborted when the engine
// has reported that nobody touches its memory any more.
// A transfer that was cut goes on from what has arrived, also from the next holder.
//
// Law: a copy is sealed only when the directory has entered this node as one that may hold it, so
// that a deletion finds it; or when the holder vouches for it, because the directory is away, slow,
// or was not asked (docs/consistency.md).
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/base/trace.h"
#include "lib/node/pulls/pull_attempt.h"
#include "lib/node/pulls/pull_context.h"
#include "lib/node/pulls/pull_holders.h"
#include "lib/node/pulls/pull_place.h"
#include "lib/node/pulls/pull_registration.h"
#include "lib/node/pulls/pull_state.h"
#include "lib/node/pulls/pull_waiter.h"
#include "lib/node/pulls/pull_waiters.h"

namespace tokamak::node {

class ObjectPull final : private PullRegistration::Owner, private PullAttempt::Owner, private PullWaiters::Owner {
 public:
  // `context` must outlive it. `number` names the pull in traces and orders it in queues.
  ObjectPull(PullContext& context, const base::ObjectId& id, uint64_t number);
  ~ObjectPull();
  ObjectPull(const ObjectPull&) = delete;
  ObjectPull& operator=(const ObjectPull&) = delete;

  void Begin() { Enter(State::kLocating); }

  // `once`: the generation wanted by a waiter that does not wait (PullTable::StartOnce);
  // kNoGeneration: it waits.
  std::unique_ptr<PullWaiter> AddWaiter(transport::Protocol protocol, base::Generation once, PullCallback done);

  // Goes on: a holder that it queues for has a slot.
  void TakeTurn();

  // See PullTable.
  bool IsComing(const base::ObjectVersion& version) const { return registration_.IsComing(version); }
  void OnWithdraw(const base::ObjectVersion& version) { registration_.OnWithdraw(version); }
  void Drop(const base::ObjectVersion& version);

  PullProgress progress() const { return {place_.moved_bytes(), place_.size()}; }

  uint64_t number() const { return number_; }
  // The latest failure or obstacle; ok: none is known.
  absl::Status trouble() const override;

 private:
  using State = PullState;

  void Enter(State state);
  void Leave();
  void Record(base::Phase phase) const;
  bool TellWhoDoesNotWait(absl::StatusCode code, absl::string_view why, base::Generation but = base::kNoGeneration);
  void OnNobodyWaits() override;
  void Locate();
  const directory::LocatedObject* KnownPlace(bool fresh) const;
  void TryKnownPlace();
  void TryAnyKnownPlace();
  bool AskToBring();
  bool IsSmall() const;
  void AskDirectory(base::Duration wait);
  void OnLocated(const absl::StatusOr<directory::LocatedObject>& info) override;
  void Located(const absl::StatusOr<directory::LocatedObject>& info);
  void Registered(const absl::StatusOr<directory::LocatedObject>& info);
  void NotRegistered();
  void Take(const directory::LocatedObject& info);
  void TakeContents(absl::Span<const uint8_t> contents);
  void TryNextHolder();
  void RefreshPeers();
  void BackOff();
  void Queue(const std::vector<directory::NodeId>& holders);
  bool MayBeBundled() const;
  void AskInBundle(const directory::NodeId& holder);
  void MoveFrom(const directory::NodeId& holder);
  absl::Status ReservePlace();
  void NoPlace(const absl::Status& status);
  void OnMoved(const absl::Status& status) override;
  void Failed(const absl::Status& status);
  void Arrived();
  void AwaitDirectory();
  void AskToVouch();
  void DoesNotVouch();
  void SealMoved();
  void SealHere(const directory::NodeId& holder, const transport::TransferReport& report, Via via);
  void StartOver();
  bool EndIfHere();
  void Finish(const absl::Status& status);
  uint64_t size() const { return info_.data_size + info_.metadata_size; }

  PullContext& context_;
  const PullNeeds& needs_;
  const base::ObjectId id_;
  const uint64_t number_;
  State state_ = State::kNew;
  transport::Protocol protocol_ = transport::Protocol::kAuto;
  absl::Status trouble_;
  base::Duration retry_delay_;
  bool place_used_ = false;      // a remembered place was tried: at most once
  bool asked_to_bring_ = false;  // a holder was asked to bring it: at most once
  bool was_bundled_ = false;     // it was asked for in a bundle: at most once
  directory::LocatedObject info_;
  base::ObjectVersion version_;                // the content being pulled
  bool dropped_ = false;                       // version_ must not be sealed
  directory::NodeId bringer_;                  // kBringing, kBundled: the holder asked
  std::vector<directory::NodeId> queued_for_;  // kQueued
  Via via_ = Via::kLocal;                      // kOver: the way the object came
  PullRegistration registration_;
  PullHolders holders_;
  base::Timer timer_;       // of a state that waits for time
  base::Pending question_;  // kRefreshing: to the directory. kBringing, kBundled, kVouching: to the holder
  PullPlace place_;         // of version_; kept between attempts as long as some bytes have arrived
  PullAttempt attempt_;     // kMoving; the last one in later states. Ends before the place
  PullWaiters waiters_;
};

}  // namespace tokamak::node
