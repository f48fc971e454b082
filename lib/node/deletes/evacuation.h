// Evacuation hands what this node keeps over to other nodes, before it leaves: each object that was
// put here gets a copy elsewhere that is kept as the original was, and not evicted like others.
//
// A node is asked to keep an object; it pulls it, as for a program of its own, and answers when it
// has it, or why not (object_keep.h). Whom to ask is EvacuationTargets' to say. What is refused is
// asked for again, of others and later, until it is taken or the time is over; what is deleted
// meanwhile is forgotten at once, at the other end as well.
//
//   the store's list, what is put meanwhile --> waiting <--> moving --> handed over
//                                                  ^____________|  refused, no answer
//
// What is put meanwhile goes the same way. When nothing is left, or more is put than handed over,
// or three quarters of the time are over, the store is closed to puts; what was put until then is
// handed over as well, and only then it ends: whatever a program was told is kept is elsewhere, or
// counted in the report.
//
// Law: an object is given up at the end of the time only, unless there never was another node.
// Law: no answer is waited for without looking: every kLookInterval each node that is asked says
//      how far it is. One that does not is set aside, and what it was to keep is asked of others.
// Bound: kAtOnce objects move, kMaxWaiting are remembered to be asked for again; further ones are
// forgotten, and found again in the store's list. What was handed over is remembered as long as it
// is in the store.
// Thread rule: the node's control loop.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/directory/directory.h"
#include "lib/node/calls/object_messages.h"
#include "lib/node/cluster/membership.h"
#include "lib/node/deletes/evacuation_targets.h"
#include "lib/store/store.h"
#include "lib/transport/caller.h"
#include "lib/transport/limits.h"

namespace tokamak::node {

// So far, or at the end. Bytes are data and metadata.
struct EvacuationReport {
  uint64_t objects = 0;  // handed over
  uint64_t bytes = 0;
  uint64_t left_objects = 0;  // at the end: that nobody took
  uint64_t left_bytes = 0;
  // Why some are left, or have to wait: how many for which reason, the most first. OK: none are.
  absl::Status trouble;
};

class Evacuation final : public base::Handle {
 public:
  static constexpr size_t kAtOnce = 64;
  static constexpr size_t kMaxWaiting = 1024;
  static constexpr base::Duration kLookInterval = base::Seconds(1);
  static constexpr base::Duration kLookDeadline = base::Seconds(3);
  // A pull of which nothing comes for this long is tried elsewhere: a little later than the other
  // node says so itself.
  static constexpr base::Duration kStall = base::Seconds(12);
  static_assert(kStall > transport::kPatience);
  // Where the directory names no other node for this long, this one is alone and does not wait.
  static constexpr base::Duration kAloneFor = base::Seconds(2);
  // The store is closed to puts when 1 / kDoorShare of the time is left, and when there were more
  // puts than were handed over, by more than that share of these and kAtOnce.
  static constexpr int kDoorShare = 4;

  using Callback = std::function<void(const EvacuationReport&)>;

  // What it works with. All references must outlive it.
  struct Services {
    base::EventLoop& loop;
    store::Store& store;
    directory::Directory& directory;
    const Membership& membership;
    transport::Caller& holders;  // of the service kObjects
    size_t& evacuations;         // under way
    directory::NodeId self;
    base::Duration deadline;  // of a question to the directory
  };

  // Starts at once, and ends after `limit` at the latest. `progress` runs every second, `done`
  // once, later; then the store stays closed to puts. Where it is dropped before, it is open again.
  Evacuation(const Services& services, base::Duration limit, Callback progress, Callback done);
  ~Evacuation() override;

 private:
  // Why an object is still here, in the order in which equal counts are told.
  enum class Why : uint8_t {
    kNoTime,
    kNoNode,
    kNoDirectory,
    kNoRoom,
    kTooLarge,
    kInUse,
    kNoAnswer,
    kUnannounced,
    kLater,
  };
  static constexpr size_t kWhys = 9;
  static absl::Status Describe(Why why, uint64_t count);

  struct Object {
    KeepRequest request;
    Why why = Why::kNoTime;
    absl::InlinedVector<directory::NodeId, 1> refused_by;  // since it waited last
    base::Duration pause;                                  // doubled each time that all have refused it
    base::Time due;                                        // waiting
    directory::NodeId target;                              // moving there; empty: waiting
    base::Pending call;
    uint64_t come = 0;   // bytes of it, there
    base::Time came_at;  // the last of these

    bool moves() const { return !target.empty(); }
  };
  using Objects = std::map<base::ObjectVersion, Object>;
  using Counts = std::array<uint64_t, kWhys>;
  static absl::Status Summary(const Counts& counts);

  void AskForNodes();
  void Heard(absl::Span<const store::Event> events);
  void Add(const base::ObjectVersion& version, const store::Location& place, base::Time due);
  void ListNextPage();
  void ListAgain();
  void Fill();
  void FillSoon() { FillAt(services_.loop.Now()); }
  void FillAt(base::Time time);
  bool LookAtNext();
  bool Start(Objects::iterator object);
  void Ask(Objects::iterator object, const directory::NodeId& target);
  void Answered(const base::ObjectVersion& version, const absl::StatusOr<absl::Span<const uint8_t>>& reply);
  void TakeAnswer(Objects::iterator object, EvacuationTargets::Target& target, std::optional<KeepAnswer> answer);
  void HandedOver(Objects::iterator object);
  void Stop(Objects::iterator object, Why why);
  void Pause(Objects::iterator object, Why why);
  void Forget(Objects::iterator object);
  void StepOrEnd();
  void CloseDoor();
  void LookAtTargets();
  void Looked(const directory::NodeId& id, const std::vector<base::ObjectVersion>& asked,
              const absl::StatusOr<absl::Span<const uint8_t>>& reply);
  void EndStalled();
  void Report();
  void CountLeft();
  void Finish();

  const Services services_;
  const base::Time began_;
  const base::Time limit_;
  const Callback progress_;
  Callback done_;
  EvacuationReport report_;
  EvacuationTargets targets_;
  bool targets_known_ = false;  // the directory has answered once
  bool seen_others_ = false;    // and named another node
  base::Pending question_;
  base::Timer question_timer_;

  std::optional<base::ObjectId> listed_to_;
  bool listed_ = false;      // to the end
  bool list_again_ = false;  // something was forgotten
  base::Time list_again_at_;
  Why forgotten_why_ = Why::kNoTime;  // of the last that was
  bool door_closed_ = false;
  uint64_t put_ = 0;  // objects, meanwhile

  Objects objects_;                                           // waiting and moving
  std::set<std::pair<base::Time, base::ObjectVersion>> due_;  // those that wait
  size_t moving_ = 0;
  absl::flat_hash_set<base::ObjectVersion> handed_;  // and still in the store

  std::unique_ptr<store::Subscription> events_;
  base::Timer fill_timer_;
  base::Time fill_at_;  // while it is armed
  base::Timer door_timer_;
  base::Timer report_timer_;
  base::Timer end_;
};

}  // namespace tokamak::node
