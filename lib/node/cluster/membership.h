// Membership keeps this node in the directory, and the directory true about it.
//
// It renews the node's lease, announces what the store seals, withdraws what is gone, and carries
// out what the directory says back: a generation that was deleted, or that lost its id to another,
// is dropped. What could not be said because the directory was away is said later; a directory that
// forgot us (a restart) is told everything again, a page of the store at a time. From time to time
// the store and what the directory knows are compared, and what differs is said again.
//
//   dirty: queued --> in a batch --> confirmed              in the order in which they became dirty,
//             ^           |                                 but what is to be confirmed first
//             +-- backing off: each for itself
//
// Law: one word about a version is under way at a time, and it says what was true when it left: the
// last word is the truth.
// Law: nobody else speaks for this node's objects. Anyone who finds a stale entry asks its holder
// to recheck.
// Law: when lease and grace are over without a renewal the node is fenced: what it holds may have
//      been deleted, or its id given to another content (docs/consistency.md). It stays so until
//      everything was announced again.
// Law: what was said without an answer may have been taken in. It stays dirty until an answer has
//      come to what is true then.
// Bound: MembershipOptions::max_dirty versions are dirty at once, and those that are to be
// confirmed. Further ones are not noted: none of them was ever said, and what the store and the
// directory know of them is compared when there is room (comparison.h).
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

// Versions of which the directory is yet to hear: see the bound of Membership.
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
  // The directory knows that copies are coming here, and where else the object is: that they have
  // come is said for many at once.
  base::Duration gather_copies = base::Milliseconds(1);
  // What is made here is announced at once, and what is made within this time after that together:
  // a program that puts one small object after another would wait for as many announcements.
  base::Duration gather_announcements = base::Microseconds(250);
  size_t max_dirty = kMaxDirty;                   // fewer in simulated lives, which come to their bound then
  size_t words_at_once = directory::kMaxUpdates;  // in one call; fewer where announcing everything is to take long
};

struct MembershipCounters {
  uint64_t renewals = 0;
  uint64_t failed_renewals = 0;
  uint64_t announced = 0;
  uint64_t withdrawn = 0;
  uint64_t refused = 0;           // contents dropped since another had their id
  uint64_t dropped = 0;           // contents dropped since they were deleted elsewhere
  uint64_t repaired = 0;          // announcements that the directory had lost
  uint64_t re_announcements = 0;  // times that everything was announced again
  uint64_t overflows = 0;         // times that more than max_dirty were dirty, and all is compared
};

class Membership final {
 public:
  static constexpr size_t kBatchesInFlight = 4;
  static constexpr size_t kNamesAtOnce = 8 * 1024;  // bytes of names with which a call is full: a message takes it

  using StatusCallback = std::function<void(const absl::Status&)>;

  // References must outlive it.
  Membership(base::EventLoop& loop, store::Store& store, directory::Directory& directory, Copies& copies,
             directory::NodeInfo self, const MembershipOptions& options);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Enters the directory and stays in it. `answered` runs with each answer until it is in: on an
  // error it goes on trying.
  void Start(StatusCallback answered);

  // Ends the lease; `left` runs by the directory deadline. Nothing is renewed or announced after.
  void Leave(StatusCallback left);

  // Says again whether `version` is here: somebody was told that it is, and did not find it, or a
  // pull of it has ended.
  void Recheck(const base::ObjectVersion& version);

  // A pull brought `version` here without the directory knowing. It is announced as soon as
  // possible, and dropped unless the directory has accepted it by `until`.
  void NoteUnregistered(const base::ObjectVersion& version, base::Time until) { unregistered_.Add(version, until); }

  // To be called in the task that seals `version` here: announces it, and answers when the
  // directory has accepted it, or refused it (kAlreadyExists: it is dropped), or at the deadline
  // (kUnavailable). Once for each version.
  [[nodiscard]] base::Pending Confirm(const base::ObjectVersion& version, base::Duration deadline, StatusCallback done);

  bool IsConfirming(const base::ObjectVersion& version) const { return confirmations_.count(version) != 0; }

  // The directory was found to have lost something of this node's: looks at once what else, and
  // says it again.
  void DirectoryHasLost();
  // The same loss may have met other nodes, which have not said again yet what they hold.
  bool OthersMayBeLost() const { return loop_.Now() < others_may_be_lost_until_; }

  // A call of the directory's was not answered: finds out at once whether it is away.
  void Suspect();

  bool joined() const { return joined_; }
  // It did not answer when it was asked last.
  bool directory_away() const { return away_; }
  // What is known of it where it leaves a question unanswered: kUnavailable, names it where it is
  // away.
  absl::Status WhyDirectoryIsSilent() const;
  // See the law above.
  bool fenced() const;
  // To be called before anything that is here is shown: UnregisteredCopies::EndOverdue.
  void EndOverdue() { unregistered_.EndOverdue(); }
  // Sealed here, and never accepted by a directory.
  bool IsUnannounced(const base::ObjectVersion& version) const {
    return fresh_.contains(version) || unregistered_.Contains(version);
  }
  // A directory has accepted it, here or where it comes from, or may have without our knowing: any
  // other that is here is nowhere else.
  bool MayBeElsewhere(const base::ObjectVersion& version) const;
  // Until when every deletion of `version`, which is here, is certain to be told to this node, or
  // refused for its sake: then it is fenced, or its copy was not registered in time. Nothing: it
  // never joined, has left, or the directory does not know all that is here.
  std::optional<base::Time> DeletionsReachUntil(const base::ObjectVersion& version) const;
  bool left() const { return leaving_; }

  // Updates that the directory has not confirmed yet, as far as they are known: while everything is
  // announced again or compared, one page.
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
    bool again = false;         // in flight, and changed since
    bool swept = false;         // part of a sweep
    bool first = false;         // on the list of those that go first
    bool may_be_known = false;  // was announced, and no answer came
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
  // At `time`, in a task of its own, unless it is to run before that anyhow.
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
  bool fence_due_ = false;               // the lease and grace ended once: fenced until complete
  bool told_complete_ = false;           // what the last renewal said
  std::string mark_;                     // JoinReply::mark, the last one
  std::string as_of_;                    // the same
  bool outdated_ = false;                // the same
  std::string last_trouble_;             // of a renewal that failed
  std::optional<base::Time> fenced_at_;  // unless renewed before; none: never joined
  StatusCallback on_answer_;             // null: it is in, or was not started
  base::Pending join_;
  base::Timer renew_timer_;
  base::Timer retry_timer_;
  base::Timer gather_timer_;  // what is dirty waits for more
  base::Time flush_at_;       // while the timer is armed
  base::Time announced_at_;   // last

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

  bool overflowed_ = false;         // something is dirty that was not noted: all is to be compared
  bool compares_all_ = false;       // for that reason
  bool comparison_failed_ = false;  // until it is tried again
  uint64_t lost_ = 0;               // by the directory, as this round has found
  base::Time others_may_be_lost_until_;
  base::Timer compare_timer_;
  Comparison comparison_;

  MembershipCounters counters_;
  base::Pending leave_;
  std::unique_ptr<store::Handle> subscription_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::node
