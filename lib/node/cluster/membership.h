// Membership keeps this node in the directory, and the directory true about it.
//
// It renews the node's lease, announces what the store seals, withdraws what is gone, and carries
// out the directory's answers: it drops a generation that was deleted or lost its id to another.
// Updates that an outage prevented are sent later; a directory that forgot us (a restart) gets
// everything again, a page of the store at a time. From time to time the store is compared with the
// directory, and differences are sent again.
//
//  dirty: queued --> in a batch --> confirmed     in the order in which they became dirty,
//            ^           |                        but first those to be confirmed
//            +-- backing off: each for itself
//
// Law: one update about a version is under way at a time, and states what was true when it left:
// the last update is the truth.
// Law: only Membership speaks for this node's objects. Anyone who finds a stale entry asks its
// holder to recheck.
// Law: when lease and grace are over without a renewal the node is fenced: its objects may have
// been deleted, or their ids given to other contents (docs/consistency.md). It stays fenced until
// everything was announced again.
// Law: an update without an answer may have been accepted. Its version stays dirty until an answer
// has come to what is true then.
// Bound: MembershipOptions::max_dirty versions are dirty at once, plus those to be confirmed.
// Further ones are not noted: none of them was ever announced, and they are compared with the
// directory when there is room (comparison.h).
// Thread rule: the node's control loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/directory/directory.h"
#include "lib/node/cluster/comparison.h"
#include "lib/node/copies/copies.h"
#include "lib/node/copies/unregistered_copies.h"
#include "lib/store/store.h"

namespace tokamak::node {

// Dirty versions at once: see the bound of Membership.
constexpr size_t kMaxDirty = 65536;

struct MembershipOptions {
  base::Duration lease = base::Seconds(10);
  base::Duration grace = base::Seconds(60);
  base::Duration renew = base::Seconds(3);
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration retry = base::Milliseconds(200);          // after the directory did not answer
  base::Duration first_back_off = base::Milliseconds(50);  // of one version that was not accepted; then doubled
  base::Duration max_back_off = base::Seconds(5);
  base::Duration verify_every = base::Seconds(30);
  // Copies wait this long to be announced together: the directory knows already that they are
  // coming, and where else the object is.
  base::Duration gather_copies = base::Milliseconds(1);
  // An object created here is announced at once, those created within this time after it together:
  // else each of a program's small puts would wait for an announcement of its own.
  base::Duration gather_announcements = base::Microseconds(250);
  size_t max_dirty = kMaxDirty;                   // fewer in simulations, which then reach the bound
  size_t words_at_once = directory::kMaxUpdates;  // in one call; fewer in tests of slow announcing
};

struct MembershipCounters {
  uint64_t renewals = 0;
  uint64_t failed_renewals = 0;
  uint64_t announced = 0;
  uint64_t withdrawn = 0;
  uint64_t refused = 0;           // contents dropped because another had their id
  uint64_t dropped = 0;           // contents dropped because they were deleted elsewhere
  uint64_t repaired = 0;          // announcements that the directory had lost
  uint64_t re_announcements = 0;  // times that everything was announced again
  uint64_t overflows = 0;         // times that more than max_dirty were dirty, and all was compared
};

class Membership final {
 public:
  static constexpr size_t kBatchesInFlight = 4;
  static constexpr size_t kNamesAtOnce = 8 * 1024;  // bytes of names that make a call full: it fits in a message

  using StatusCallback = std::function<void(const absl::Status&)>;

  // References must outlive it.
  Membership(base::EventLoop& loop, store::Store& store, directory::Directory& directory, Copies& copies,
             directory::NodeInfo self, const MembershipOptions& options);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Enters the directory and stays in it, trying again after errors; `answered` runs with each
  // answer until it is in.
  void Start(StatusCallback answered);

  // Ends the lease; `left` runs by the directory deadline. Nothing is renewed or announced
  // afterwards.
  void Leave(StatusCallback left);

  // Sends again whether `version` is here: somebody expected it here and did not find it, or a pull
  // of it has ended.
  void Recheck(const base::ObjectVersion& version);

  // Notes that a pull brought `version` here without the directory knowing: announces it as soon as
  // possible, and drops it unless the directory has accepted it by `until`.
  void NoteUnregistered(const base::ObjectVersion& version, base::Time until) { unregistered_.Add(version, until); }

  // Announces `version`, in the task that seals it here, and answers when the directory has
  // accepted it. kAlreadyExists: the directory refused it, and it is dropped. kUnavailable: no
  // answer by the deadline. Once for each version.
  [[nodiscard]] base::Pending Confirm(const base::ObjectVersion& version, base::Duration deadline, StatusCallback done);

  bool IsConfirming(const base::ObjectVersion& version) const { return confirmations_.count(version) != 0; }

  // The directory has lost an entry of this node: looks at once for others, and announces them
  // again.
  void DirectoryHasLost();
  // True if the same loss may have met other nodes that have not announced their objects again yet.
  bool OthersMayBeLost() const { return loop_.Now() < others_may_be_lost_until_; }

  // A call to the directory was not answered: finds out at once whether it is away.
  void Suspect();

  bool joined() const { return joined_; }
  // True if the last call was not answered.
  bool directory_away() const { return away_; }
  // Explains an unanswered question: kUnavailable; names the directory if it is away.
  absl::Status WhyDirectoryIsSilent() const;
  // See the law above.
  bool fenced() const;
  // Ends overdue copies; call it before showing any object. See UnregisteredCopies::EndOverdue.
  void EndOverdue() { unregistered_.EndOverdue(); }
  // True if sealed here and never accepted by a directory.
  bool IsUnannounced(const base::ObjectVersion& version) const {
    return fresh_.contains(version) || unregistered_.Contains(version);
  }
  // True if a directory has accepted it, here or where it comes from, or may have without our
  // knowing. Otherwise an object of this node is nowhere else.
  bool MayBeElsewhere(const base::ObjectVersion& version) const;
  // Until when every deletion of `version`, which is here, is certain to reach this node or to be
  // refused for its sake: then it is fenced, or its copy was not registered in time. nullopt: it
  // never joined, has left, or the directory does not know all its objects.
  std::optional<base::Time> DeletionsReachUntil(const base::ObjectVersion& version) const;
  bool left() const { return leaving_; }

  // Updates known to be unconfirmed; an announcement of everything or a comparison counts as one.
  size_t behind() const { return dirty_.size() + (sweeping_ || overflowed_ || compares_all_ ? 1 : 0); }
  const directory::NodeInfo& self() const { return self_info_; }
  const MembershipCounters& counters() const { return counters_; }

 private:
  // A version that the directory may have wrong.
  struct Dirty {
    enum class State : uint8_t { kQueued, kInFlight, kBackingOff };
    explicit Dirty(const base::ObjectVersion& v) : version(v) {}

    const base::ObjectVersion version;
    State state = State::kQueued;
    bool again = false;         // changed while in flight
    bool swept = false;         // part of a sweep
    bool first = false;         // on first_
    bool may_be_known = false;  // was announced without an answer
    base::Duration back_off;
    base::Link<Dirty> link;  // kQueued
  };
  struct Said {
    Dirty* dirty;
    bool announces;
  };
  struct Batch {
    absl::InlinedVector<Said, 1> words;
    base::Pending call;
  };
  class Confirmation;

  void Renew();
  void Renewed(base::Time sent, bool complete, const absl::StatusOr<directory::JoinReply>& reply);
  void Entered();
  void Mark(absl::Span<const store::Event> events);
  bool MarkDirty(const base::ObjectVersion& version, bool swept = false);
  void Enqueue(Dirty& dirty);
  void GiveUpUnregistered(const base::ObjectVersion& version);
  void Overflow();
  size_t queued() const { return first_.size() + queue_.size(); }
  size_t room() const { return options_.max_dirty - std::min(options_.max_dirty, dirty_.size()); }
  void Flush();
  // Arms the gather timer for `time`, unless it runs earlier anyhow.
  void FlushAt(base::Time time);
  void MarkNextPage();
  bool SendBatch();
  std::optional<directory::Update> Word(const Dirty& dirty);
  directory::Standing StandingOf(const Dirty& dirty) const;
  void Answered(uint64_t number, const absl::StatusOr<directory::UpdateStatuses>& statuses);
  void Told(Dirty& dirty, bool announced, const absl::Status& status);
  void Requeue(Dirty& dirty);
  void BackOff(Dirty& dirty);
  void EndBackOffs();
  void Done(Dirty& dirty);
  void Conclude(const base::ObjectVersion& version, const absl::Status& status);
  bool complete() const { return !sweeping_ && swept_outstanding_ == 0 && unregistered_.empty(); }
  void SayIfComplete();
  Comparison::Callbacks ComparisonCallbacks();
  bool MayCompare() const;
  void CompareLater();
  void Compare();
  void LookForLosses();
  void SuspectOthers();
  void Differs(const base::ObjectVersion& version, bool here);
  void Compared(const absl::Status& status);

  base::EventLoop& loop_;
  store::Store& store_;
  directory::Directory& directory_;
  Copies& copies_;
  directory::NodeInfo self_info_;
  const MembershipOptions options_;

  bool joined_ = false;
  bool away_ = false;       // the last call was not answered
  bool returning_ = false;  // was in a directory before, in this life
  bool leaving_ = false;
  bool fence_due_ = false;               // lease and grace ended once: fenced until complete
  bool told_complete_ = false;           // in the last renewal
  std::string mark_;                     // the last JoinReply's
  std::string as_of_;                    // likewise
  bool outdated_ = false;                // likewise
  std::string last_trouble_;             // of a renewal that failed
  std::optional<base::Time> fenced_at_;  // unless renewed before; nullopt: never joined
  StatusCallback on_answer_;             // null: it is in, or was not started
  base::Pending join_;
  base::Timer renew_timer_;
  base::Timer retry_timer_;
  base::Timer gather_timer_;  // gathers dirty versions
  base::Time flush_at_;       // while the timer is armed
  base::Time announced_at_;   // the last time

  absl::flat_hash_map<base::ObjectVersion, std::unique_ptr<Dirty>> dirty_;  // never visited in its own order
  base::IntrusiveList<Dirty, &Dirty::link> first_;                          // to be confirmed
  base::IntrusiveList<Dirty, &Dirty::link> queue_;
  std::multimap<base::Time, Dirty*> backing_off_;
  base::Timer back_off_timer_;
  std::map<uint64_t, Batch> batches_;
  uint64_t last_batch_ = 0;
  absl::flat_hash_set<base::ObjectVersion> fresh_;  // created here, sealed, and not accepted yet
  UnregisteredCopies unregistered_;
  std::map<base::ObjectVersion, Confirmation*> confirmations_;

  bool sweeping_ = false;  // marking everything dirty, page by page
  std::optional<base::ObjectId> swept_to_;
  size_t swept_outstanding_ = 0;

  bool overflowed_ = false;         // a dirty version was not noted: all is to be compared
  bool compares_all_ = false;       // because of an overflow
  bool comparison_failed_ = false;  // until the next try
  uint64_t lost_ = 0;               // by the directory, in this round so far
  base::Time others_may_be_lost_until_;
  base::Timer compare_timer_;
  Comparison comparison_;

  MembershipCounters counters_;
  base::Pending leave_;
  std::unique_ptr<store::Handle> subscription_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::node
