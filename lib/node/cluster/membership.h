// Membership keeps this node in the directory, and the directory true about it.
//
// Renews the lease, announces seals, withdraws losses, and drops a generation that the directory
// reports deleted or without its id. After an outage late updates follow; to a directory that
// forgot us everything goes again, in pages. Periodic comparisons repair differences.
//
//  dirty: queued --> in a batch --> confirmed     in the order in which they became dirty,
//            ^           |                        but first those to be confirmed
//            +-- backing off: each for itself
//
// Law: one update about a version is under way at a time, and states the truth as it left.
// Law: only Membership speaks for this node's objects; a finder of a stale entry asks the holder to
// recheck.
// Law: a node is fenced from the end of lease and grace without a renewal until everything is
// announced again: its objects may have been deleted, or lost their ids (docs/consistency.md).
// Law: an update without an answer may have been accepted; its version stays dirty until what is
// true later is answered.
// Bound: MembershipOptions::max_dirty versions are dirty at once, plus those to be confirmed.
// Further ones, never announced, are found by a comparison when there is room (comparison.h).
// Thread rule: the control loop.
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

constexpr size_t kMaxDirty = 65536;

struct MembershipOptions {
  base::Duration lease = base::Seconds(10);
  base::Duration grace = base::Seconds(60);
  base::Duration renew = base::Seconds(3);
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration retry = base::Milliseconds(200);          // without an answer
  base::Duration first_back_off = base::Milliseconds(50);  // of a version not accepted; doubles
  base::Duration max_back_off = base::Seconds(5);
  base::Duration verify_every = base::Seconds(30);
  // Copies gather this long: the directory knows that they come.
  base::Duration gather_copies = base::Milliseconds(1);
  // An object created here is announced at once; those within this time after it go together, else
  // small puts would queue for an announcement each.
  base::Duration gather_announcements = base::Microseconds(250);
  size_t max_dirty = kMaxDirty;                   // fewer in simulations
  size_t words_at_once = directory::kMaxUpdates;  // in one call; fewer in tests
};

struct MembershipCounters {
  uint64_t renewals = 0;
  uint64_t failed_renewals = 0;
  uint64_t announced = 0;
  uint64_t withdrawn = 0;
  uint64_t refused = 0;           // another content had the id
  uint64_t dropped = 0;           // deleted elsewhere
  uint64_t repaired = 0;          // announced again
  uint64_t re_announcements = 0;  // full announcements
  uint64_t overflows = 0;         // times that dirty versions exceeded max_dirty
};

class Membership final {
 public:
  static constexpr size_t kBatchesInFlight = 4;
  static constexpr size_t kNamesAtOnce = 8 * 1024;  // bytes of names that fill a call

  using StatusCallback = std::function<void(const absl::Status&)>;

  // References must outlive it.
  Membership(base::EventLoop& loop, store::Store& store, directory::Directory& directory, Copies& copies,
             directory::NodeInfo self, const MembershipOptions& options);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Enters the directory and stays in it, retrying; `answered` runs with each answer until it is
  // in.
  void Start(StatusCallback answered);

  // Ends the lease; `left` runs by the directory deadline. No renewal or announcement follows.
  void Leave(StatusCallback left);

  // Sends again whether `version` is here: it was missed, or a pull of it has ended.
  void Recheck(const base::ObjectVersion& version);

  // Notes a pulled `version` unknown to the directory: announces it soon, and drops it unless
  // accepted by `until`.
  void NoteUnregistered(const base::ObjectVersion& version, base::Time until) { unregistered_.Add(version, until); }

  // Answers when the directory has accepted `version`; call it in the task that seals it, once.
  // kAlreadyExists: refused, and dropped. kUnavailable: no answer by the deadline.
  [[nodiscard]] base::Pending Confirm(const base::ObjectVersion& version, base::Duration deadline, StatusCallback done);

  bool IsConfirming(const base::ObjectVersion& version) const { return confirmations_.count(version) != 0; }

  // The directory has lost an entry of this node: looks for others and announces them again.
  void DirectoryHasLost();
  // True if other nodes may have the same loss still unrepaired.
  bool OthersMayBeLost() const { return loop_.Now() < others_may_be_lost_until_; }

  // A call to the directory was not answered: probes at once.
  void Suspect();

  bool joined() const { return joined_; }
  // True if the last call was not answered.
  bool directory_away() const { return away_; }
  // Explains an unanswered question: kUnavailable, naming a directory that is away.
  absl::Status WhyDirectoryIsSilent() const;
  bool fenced() const;
  // See UnregisteredCopies::EndOverdue.
  void EndOverdue() { unregistered_.EndOverdue(); }
  // True if sealed here and never accepted.
  bool IsUnannounced(const base::ObjectVersion& version) const {
    return fresh_.contains(version) || unregistered_.Contains(version);
  }
  // True if a directory has, or may have, accepted it, here or at its source; else it is nowhere
  // else.
  bool MayBeElsewhere(const base::ObjectVersion& version) const;
  // Until when each deletion of `version`, which is here, surely reaches this node or is refused
  // for its sake. nullopt: never joined, left, or not all announced.
  std::optional<base::Time> DeletionsReachUntil(const base::ObjectVersion& version) const;
  bool left() const { return leaving_; }

  // Unconfirmed updates; a full announcement or comparison is one.
  size_t behind() const { return dirty_.size() + (sweeping_ || overflowed_ || compares_all_ ? 1 : 0); }
  const directory::NodeInfo& self() const { return self_info_; }
  const MembershipCounters& counters() const { return counters_; }

 private:
  struct Dirty {
    enum class State : uint8_t { kQueued, kInFlight, kBackingOff };
    explicit Dirty(const base::ObjectVersion& v) : version(v) {}

    const base::ObjectVersion version;
    State state = State::kQueued;
    bool again = false;  // changed while in flight
    bool swept = false;
    bool first = false;
    bool may_be_known = false;  // announced without an answer
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
  bool away_ = false;
  bool returning_ = false;  // was in a directory earlier in this life
  bool leaving_ = false;
  bool fence_due_ = false;  // set from the end of lease and grace until complete
  bool told_complete_ = false;
  std::string mark_;                     // the last JoinReply's
  std::string as_of_;                    // likewise
  bool outdated_ = false;                // likewise
  std::string last_trouble_;             // of a renewal that failed
  std::optional<base::Time> fenced_at_;  // nullopt: never joined
  StatusCallback on_answer_;             // null: in, or not started
  base::Pending join_;
  base::Timer renew_timer_;
  base::Timer retry_timer_;
  base::Timer gather_timer_;
  base::Time flush_at_;  // while the timer is armed
  base::Time announced_at_;

  absl::flat_hash_map<base::ObjectVersion, std::unique_ptr<Dirty>> dirty_;  // never iterated
  base::IntrusiveList<Dirty, &Dirty::link> first_;                          // to be confirmed
  base::IntrusiveList<Dirty, &Dirty::link> queue_;
  std::multimap<base::Time, Dirty*> backing_off_;
  base::Timer back_off_timer_;
  std::map<uint64_t, Batch> batches_;
  uint64_t last_batch_ = 0;
  absl::flat_hash_set<base::ObjectVersion> fresh_;  // sealed here, not accepted yet
  UnregisteredCopies unregistered_;
  std::map<base::ObjectVersion, Confirmation*> confirmations_;

  bool sweeping_ = false;  // marking all dirty, in pages
  std::optional<base::ObjectId> swept_to_;
  size_t swept_outstanding_ = 0;

  bool overflowed_ = false;  // not noted: compare all
  bool compares_all_ = false;
  bool comparison_failed_ = false;
  uint64_t lost_ = 0;  // this round
  base::Time others_may_be_lost_until_;
  base::Timer compare_timer_;
  Comparison comparison_;

  MembershipCounters counters_;
  base::Pending leave_;
  std::unique_ptr<store::Handle> subscription_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::node
