// LocalDirectory is the directory as pure state in this process: one node's own, or the one that a
// serving node shares with others.
//
// Law: a call has taken effect when it returns; only its answer comes later.
// Law: no task looks at more than some 1,000 objects, even when nodes that hold millions go.
// Bounds: kMaxNodes, LocalOptions (kResourceExhausted beyond).
// Thread rule: its loop.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/answers.h"
#include "lib/base/event_loop.h"
#include "lib/directory/deletions.h"
#include "lib/directory/directory.h"
#include "lib/directory/members.h"
#include "lib/directory/object_entries.h"
#include "lib/directory/sweep.h"
#include "lib/directory/waits.h"

namespace tokamak::directory {

// Waits of the node itself, and of each that asks it.
constexpr size_t kMaxWaitsOfPeer = 65536;

struct LocalOptions {
  size_t objects = size_t{1} << 24;  // known, or being deleted
  size_t waiting = size_t{1} << 20;  // for an object to appear

  // After its start, while it cannot know who holds what: the nodes' lease, by which every live
  // node has renewed it.
  base::Duration recovery = base::Seconds(10);

  size_t tombstones = kMaxTombstones;  // at least 1

  // Life of the directory, in marks; drawn at random. 0: its start, for virtual time.
  uint64_t life = 0;
};

class LocalDirectory final : public Directory {
 public:
  // `loop` must outlive it.
  explicit LocalDirectory(base::EventLoop& loop, const LocalOptions& options = {});
  LocalDirectory(const LocalDirectory&) = delete;
  LocalDirectory& operator=(const LocalDirectory&) = delete;

  base::Pending Join(const JoinRequest& request, base::Duration deadline, JoinCallback done) override;
  base::Pending Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline, StatusCallback done) override;
  base::Pending Update(const NodeId& node, absl::string_view as_of, absl::Span<const directory::Update> updates,
                       base::Duration deadline, UpdateCallback done) override;
  base::Pending Locate(const LocateRequest& request, LocateCallback done) override;
  base::Pending Delete(const DeleteRequest& request, base::Duration deadline, DeleteCallback done) override;
  base::Pending Verify(const NodeId& node, absl::Span<const base::ObjectVersion> versions, base::Duration deadline,
                       VerifyCallback done) override;
  base::Pending Held(const NodeId& node, const std::string& after, base::Duration deadline, HeldCallback done) override;
  base::Pending Roster(base::Duration deadline, RosterCallback done) override;

  // For the server. LocateNow is a Locate without a wait, answered now; Find too, but returns
  // nothing if the object has no holder. Watch reports, without a time limit, that a holder
  // appeared; its caller keeps each asker within kMaxWaitsOfPeer.
  absl::StatusOr<LocatedObject> LocateNow(const base::ObjectId& id, const NodeId& puller);
  Waits::Result Find(const base::ObjectId& id, const NodeId& puller);
  // Held, with at most `most` versions, at least 1.
  absl::StatusOr<HeldReply> HeldNow(const NodeId& node, const std::string& after, size_t most) const;
  // Returns at most `most` of the Roster after `after`.
  std::vector<RosterEntry> RosterNow(const NodeId& after, size_t most) const { return members_.Roster(after, most); }
  [[nodiscard]] base::Pending Watch(const base::ObjectId& id, StatusCallback done);

  size_t most_waiting() const { return options_.waiting; }

  size_t nodes() const { return members_.size(); }  // alive or silent
  size_t objects() const { return objects_.size(); }
  size_t deletions() const { return deletions_.under_way(); }
  size_t tombstones() const { return deletions_.tombstones(); }
  size_t waiting() const { return waits_.size(); }

 private:
  template <typename Callback, typename Result>
  base::Pending Answer(Callback done, Result result);
  base::Pending Wait(const Waits::Asker& asker, std::optional<base::Duration> wait, size_t* count, LocateCallback done);
  Waits::Result FindFor(const Waits::Asker& asker);

  // True while nodes of an earlier directory may yet come back.
  bool has_just_begun() const { return learnt_.armed(); }
  // True if there may be an unknown holder; KnowsAll names it (kUnavailable).
  bool may_lack() { return has_just_begun() || members_.Learning() != nullptr; }
  absl::Status KnowsAll();

  absl::StatusOr<JoinReply> Enter(const JoinRequest& request);
  std::string Mark() const;
  bool MayHaveForgottenOneAfter(absl::string_view mark) const;
  bool IsOutdated(const Member& node) const;
  absl::Status Announce(const Member& node, absl::string_view as_of, const directory::Update& update);
  absl::Status MakeFree(const Member& node, const directory::Update& update);
  void Withdraw(const Member& node, const base::ObjectVersion& version);
  void BeginDeletion(const base::ObjectId& id);
  absl::StatusOr<base::Generation> ChooseDeletion(const DeleteRequest& request);
  DeleteReply NameForDeletion(base::ObjectVersion version, NodeId after);

  base::EventLoop& loop_;
  const LocalOptions options_;
  const base::Time begun_;
  const uint64_t life_;
  const base::Timer learnt_;
  uint64_t finished_when_learnt_ = 0;  // deletions
  base::Answers answers_;
  Members members_;
  ObjectEntries objects_;
  Deletions deletions_;
  Waits waits_;
  size_t own_waits_ = 0;
  Sweep forgetting_;  // of gone lives
  Sweep asking_;      // a silent node is back
};

}  // namespace tokamak::directory
